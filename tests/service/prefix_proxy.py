"""A reverse proxy on loopback that shows a broker below a path."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

PREFIX = "/ops/eu"
_OWN = frozenset({"connection", "transfer-encoding", "keep-alive"})
"""Headers between two hosts (RFC 9110, 7.6.1)."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self.path.startswith(f"{PREFIX}/"):
            self.send_error(404)
            return
        target = urlsplit(self.server.target)
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=30)
        headers = {name: text for name, text in self.headers.items() if name.lower() not in _OWN}
        connection.request(self.command, self.path.removeprefix(PREFIX), body or None, headers)
        answer = connection.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, text in answer.getheaders():
            if name.lower() not in _OWN:
                self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    target = ""


class PrefixProxy:
    """The proxy, whose target may be set when the broker knows its port."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self.url = f"http://127.0.0.1:{server.server_port}{PREFIX}"

    def show(self, target: str) -> None:
        """Pass requests on to this URL of a broker."""
        self._server.target = target


@contextmanager
def prefix_proxy() -> Iterator[PrefixProxy]:
    """A proxy that serves until the end."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield PrefixProxy(server)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
