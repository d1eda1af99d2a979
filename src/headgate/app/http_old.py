"""Answers to clients of HTTP/1.0, which know no parts.

An answer without a length ends with its connection. Uvicorn would send it in chunks, which such a
client takes for the answer's text; joining the parts would hold the whole answer in memory.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class PlainAnswer:
    """An application that answers one request of HTTP/1.0."""

    def __init__(self, app: ASGIApp) -> None:
        """``app`` makes the answer."""
        self._app = app
        self.cycle: RequestResponseCycle | None = None
        """Uvicorn's part of the request; it is made after this."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request."""
        is_plain = False

        async def send_plainly(message: Message) -> None:
            nonlocal is_plain
            if self.cycle is not None:
                if message["type"] == "http.response.start":
                    names = {name.lower() for name, _ in message.get("headers", ())}
                    is_plain = b"content-length" not in names
                    if is_plain:
                        self.cycle.chunked_encoding = False
                elif is_plain:  # each part is as long as uvicorn expects
                    self.cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, send_plainly)
