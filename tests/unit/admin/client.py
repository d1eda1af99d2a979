"""Asks an ASGI application directly: no socket, no server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What came back. ``content_type`` is empty if there was none."""

    status: int
    content_type: str
    body: bytes
    headers: dict[str, str]

    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """The text of an error."""
        return str(self.json()["reason"])


async def ask_async(
    app: Any,
    method: str,
    path: str,
    body: bytes = b"",
    more: Mapping[str, Any] | None = None,
) -> Answer:
    """Send one request; ``path`` is percent-encoded and may have a query. ``more`` is for the
    scope."""
    raw, _, query = path.partition("?")
    scope = {
        "type": "http", "method": method, "path": raw, "raw_path": raw.encode(),
        "query_string": query.encode(), "headers": [], "scheme": "http", "server": ("test", 80),
        **(more or {}),
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    headers = dict(sent[0]["headers"])
    data = b"".join(message.get("body", b"") for message in sent[1:])
    texts = {name.decode(): value.decode() for name, value in headers.items()}
    return Answer(sent[0]["status"], texts.get("content-type", ""), data, texts)


def ask(
    app: Any, method: str, path: str, body: Any = None, more: Mapping[str, Any] | None = None
) -> Answer:
    """Send one request and wait. A body that is not bytes is sent as JSON; ``more`` is for the
    scope."""
    return asyncio.run(ask_async(app, method, path, encode(body), more))


def encode(body: Any) -> bytes:
    """A body as it is sent: bytes as they are, None as nothing, all else as JSON."""
    if body is None:
        return b""
    return body if isinstance(body, bytes) else json.dumps(body).encode()
