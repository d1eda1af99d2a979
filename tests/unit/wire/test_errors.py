from __future__ import annotations

from headgate.base.errors import HeadgateError
from headgate.wire.codes import ServerError
from headgate.wire.errors import LocalProtocolError, ProtocolError, RemoteProtocolError


def test_fault_is_reported_by_type_and_reply_by_attribute() -> None:
    error = RemoteProtocolError("bad", server_error=ServerError.CHECKSUM_ERROR)
    assert error.server_error is ServerError.CHECKSUM_ERROR
    assert RemoteProtocolError("bad").server_error is ServerError.UNKNOWN_ERROR
    assert issubclass(ProtocolError, HeadgateError)
    assert not issubclass(LocalProtocolError, RemoteProtocolError)
