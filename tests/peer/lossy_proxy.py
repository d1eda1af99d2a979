"""A proxy before an S3 that loses its answer to the first put of every version of a table.

A process: ``python lossy_proxy.py http://HOST:PORT`` tells the port it listens on, and ends with
its input. Each answer that it loses is a line on stdout.
"""

from __future__ import annotations

import http.client
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import urlsplit

_ANSWER_LIMIT_S = 30
_REQUEST_HOP_HEADERS = {"connection", "content-length", "expect", "transfer-encoding"}
_HOP_HEADERS = {"connection", "content-length", "date", "server", "transfer-encoding"}


class Proxy(BaseHTTPRequestHandler):
    """Hands a request on and its answer back, unless it is to be lost."""

    protocol_version = "HTTP/1.1"
    target = ""
    lost: ClassVar[set[str]] = set()

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def hand_on(self) -> None:
        """One request."""
        body = self._body()
        there = http.client.HTTPConnection(self.target, timeout=_ANSWER_LIMIT_S)
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in _REQUEST_HOP_HEADERS
        }
        there.request(self.command, self.path, body, headers)
        answer = there.getresponse()
        content = answer.read()
        if self.command == "PUT" and "/_delta_log/" in self.path and self.path not in self.lost:
            self.lost.add(self.path)
            tell(f"{self.path} {answer.status}")
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP_HEADERS:
                self.send_header(name, value)
        is_head = self.command == "HEAD"
        length = answer.getheader("content-length") or "0" if is_head else str(len(content))
        self.send_header("content-length", length)
        self.end_headers()
        if not is_head:
            self.wfile.write(content)

    def _body(self) -> bytes:
        """The request's body, also one in chunks."""
        if "chunked" not in (self.headers.get("transfer-encoding") or ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(parts)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = hand_on  # noqa: N815


def tell(line: str) -> None:
    """A line to whoever started this."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def end_with_input() -> None:
    """Whoever started this holds its input open."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    Proxy.target = urlsplit(sys.argv[1]).netloc
    threading.Thread(target=end_with_input, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    tell(str(server.server_port))
    server.serve_forever()
