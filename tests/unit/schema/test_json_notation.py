"""JSON schemas in the notation before Avro's."""

from __future__ import annotations

import pytest

from headgate.schema.errors import InvalidSchemaError
from headgate.schema.json_notation import old_json_id


def test_the_id() -> None:
    assert old_json_id(b'{"type":"object","id":"urn:x"}') == "urn:x"
    assert old_json_id(b'{"type":"object"}') == old_json_id(b'{"type":"object","id":7}') == ""


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"type":7}', b"[" * 50_000])
def test_what_is_in_no_notation(data: bytes) -> None:
    with pytest.raises(InvalidSchemaError):
        old_json_id(data)
