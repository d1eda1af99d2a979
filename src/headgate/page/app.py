"""Serves the page below ``/headgate/``, in front of another application.

The files hold no secret, so they need no credentials: whoever opens the page signs in there, and
each request of the page for data is authorized like any other. All addresses in the page are
relative, so it also works below a path prefix of a reverse proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.page.files import INDEX, PageFile

PREFIX: Final = "/headgate/"

SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page loads and asks nothing of another host, and runs no script that stands in a document."""

_READS: Final = ("GET", "HEAD")
_Headers = list[tuple[bytes, bytes]]


class PageApp:
    """The page, and ``rest`` for all other paths."""

    def __init__(self, files: Mapping[str, PageFile], rest: ASGIApp) -> None:
        self._files = files
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope.get("path", "") if scope["type"] == "http" else ""
        if scope.get("method") not in _READS or not (path in ("/", PREFIX[:-1]) or _is_page(path)):
            await self._rest(scope, receive, send)
        elif not _is_page(path):
            # Relative, because a proxy may put a prefix before the path.
            await _answer(scope, send, 307, [(b"location", PREFIX[1:].encode())], b"")
        else:
            await self._serve(path.removeprefix(PREFIX) or INDEX, scope, send)

    async def _serve(self, name: str, scope: Scope, send: Send) -> None:
        file = self._files.get(name)
        if file is None:
            headers = [(b"content-type", b"application/json")]
            await _answer(scope, send, 404, headers, b'{"reason":"The page has no such file"}')
            return
        asked = {name.lower(): value for name, value in scope["headers"]}
        etag = file.etag.encode()
        headers = [
            (b"etag", etag),
            (b"cache-control", b"no-cache"),
            (b"vary", b"accept-encoding"),
            (b"content-security-policy", SECURITY_POLICY.encode()),
        ]
        if etag in asked.get(b"if-none-match", b""):
            await _answer(scope, send, 304, headers, b"")
            return
        headers.append((b"content-type", file.content_type.encode()))
        body = file.body
        if b"gzip" in asked.get(b"accept-encoding", b""):
            headers.append((b"content-encoding", b"gzip"))
            body = file.compressed
        await _answer(scope, send, 200, headers, body)


def _is_page(path: str) -> bool:
    return path.startswith(PREFIX)


async def _answer(scope: Scope, send: Send, status: int, headers: _Headers, body: bytes) -> None:
    if status != 304:
        headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    sent = b"" if scope["method"] == "HEAD" else body
    await send({"type": "http.response.body", "body": sent})
