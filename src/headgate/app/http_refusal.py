"""An answer of HTTP that the broker writes without a request."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from headgate.base.web_hosts import OWN_HEADERS


def refusal_answer(status: int, reason: str) -> bytes:
    """The whole answer, behind which the connection ends."""
    body = msgspec.json.encode({"reason": reason})
    lines = [
        b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode()),
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        *(name + b": " + value for name, value in OWN_HEADERS),
        b"connection: close",
    ]
    return b"\r\n".join([*lines, b"", body])
