"""Errors about schemas."""

from __future__ import annotations

from headgate.base.errors import HeadgateError


class IncompatibleSchemaError(HeadgateError):
    """The topic does not take the schema of a client."""


class InvalidSchemaError(HeadgateError):
    """The definition of a schema is not what its type demands."""
