"""The notation of JSON schemas before Pulsar 2.0 wrote them in Avro's: JSON Schema."""

from __future__ import annotations

from typing import Any

import msgspec

from headgate.schema.errors import InvalidSchemaError


def old_json_id(data: bytes) -> str:
    """The ``id`` of a definition in the old notation; empty without one.

    Raises:
        InvalidSchemaError: it is in neither notation.
    """
    try:
        value: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidSchemaError(f"no JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise InvalidSchemaError("neither an Avro schema nor a JSON schema")
    found = value.get("id", "")
    return found if isinstance(found, str) else ""
