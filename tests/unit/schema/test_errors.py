"""Errors about schemas."""

from __future__ import annotations

from headgate.base.errors import HeadgateError
from headgate.schema.errors import IncompatibleSchemaError, InvalidSchemaError


def test_they_are_the_client_s_and_differ() -> None:
    assert issubclass(IncompatibleSchemaError, HeadgateError)
    assert not issubclass(InvalidSchemaError, IncompatibleSchemaError)
