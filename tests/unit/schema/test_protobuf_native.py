"""What a PROTOBUF_NATIVE definition must hold; the rest is in ``test_compatibility``."""

from __future__ import annotations

import pytest

from headgate.schema.errors import InvalidSchemaError
from headgate.schema.protobuf_native import root_message
from tests.unit.schema.test_compatibility import native


def test_the_root_message_is_found() -> None:
    assert root_message(native("p.M.N").data) == "p.M.N"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"fileDescriptorSet":"*","rootMessageTypeName":"M","rootFileDescriptorName":"x"}',
        b'{"fileDescriptorSet":"/w==","rootMessageTypeName":"M","rootFileDescriptorName":"x"}',
        b'{"fileDescriptorSet":"","rootMessageTypeName":"M","rootFileDescriptorName":"x"}',
    ],
)
def test_what_cannot_be_read(data: bytes) -> None:
    with pytest.raises(InvalidSchemaError):
        root_message(data)
