"""Protocol errors, by the side that caused them.

When bytes from a peer are fed to the decoder and the state machine, only
:class:`RemoteProtocolError` may leave them; any other exception from there is a bug of this
package.
"""

from __future__ import annotations

from headgate.base.errors import HeadgateError
from headgate.wire.codes import ServerError
from headgate.wire.messages import BaseCommand


class ProtocolError(HeadgateError):
    """Root of the protocol errors; catch a subclass instead."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the protocol. Close its connection; others are not affected.

    ``server_error`` is the code for a reply, if the protocol still allows one.
    """

    def __init__(
        self, message: str, *, server_error: ServerError = ServerError.UNKNOWN_ERROR
    ) -> None:
        super().__init__(message)
        self.server_error = server_error


class CommandTooLongError(RemoteProtocolError):
    """A command is longer than allowed, or has too many parts. The decoder skipped it and continues
    with the next frame, so the connection can stay open.

    ``command`` has the fields that its refusal needs; required fields may be missing.
    """

    def __init__(self, message: str, command: BaseCommand) -> None:
        super().__init__(message, server_error=ServerError.NOT_ALLOWED_ERROR)
        self.command = command


class LocalProtocolError(ProtocolError):
    """The caller passed something that the protocol cannot encode."""
