"""Answers of HTTP that refuse what no application has seen."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.base.web_hosts import OWN_HEADERS

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application


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


def refusing(reason: str) -> ASGI3Application:
    """An application that refuses a request because there are too many."""

    async def refuse(_scope: Any, _receive: Any, send: Any) -> None:
        body = msgspec.json.encode({"reason": reason})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *OWN_HEADERS,
        ]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return refuse
