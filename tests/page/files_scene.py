"""The files of the page without a broker, behind a real HTTP server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from http.server import ThreadingHTTPServer
from typing import Any, Final

from starlette.types import Receive, Scope, Send

from headgate.page.app import PREFIX, PageApp
from headgate.page.files import page_files
from tests.page.scene import handler
from tests.unit.admin.client import Answer, ask_async

EMPTY: Final = f"{PREFIX}empty"
"""The path of a document that shows and loads nothing: it may import the modules of the page."""
_DOCUMENT: Final = Answer(
    200, "text/html", b"<!doctype html><title>Empty</title>", {"content-type": "text/html"}
)


class FilesScene:
    """The files, an empty document beside them, and the URL of that."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        """Method and path with query of each request, in order."""
        self.is_reachable = True
        self._app = PageApp(page_files(), _nothing_else)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}{EMPTY}"

    def ask(self, method: str, path: str, body: bytes = b"", headers: Sequence[Any] = ()) -> Answer:
        """One request."""
        self.requests.append((method, path))
        if path == EMPTY:
            return _DOCUMENT
        return asyncio.run(ask_async(self._app, method, path, body, {"headers": list(headers)}))

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()


async def _nothing_else(_: Scope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})
