"""The errors of requests to a broker, as the test client raises them."""

from __future__ import annotations

from typing import Any

from headgate.base.errors import HeadgateError
from headgate.wire.codes import ServerError


class RefusedError(HeadgateError):
    """The broker answered with an error."""

    def __init__(self, code: ServerError, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        """The code that clients act on."""
        self.message = message
        """The reason in words."""


class ConnectionLostError(HeadgateError):
    """The connection has ended; no answer will come."""


def refused(answer: Any) -> RefusedError:
    """The error that an answer of the broker carries."""
    if "error_code" in answer.DESCRIPTOR.fields_by_name:
        return RefusedError(ServerError(answer.error_code), answer.error_message)
    return RefusedError(ServerError(answer.error), answer.message)
