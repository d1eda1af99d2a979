"""The properties of a message are no headers, whatever their number."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import urllib3

from pyspark_pulsar.property_headers import PROPERTIES_MAX, PoolManager


class Site(BaseHTTPRequestHandler):
    """The path says how many properties a message has; each second name is in lower case."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        for number in range(int(self.path[1:])):
            name = "X-Pulsar-PROPERTY-" if number % 2 else "x-pulsar-property-"
            self.send_header(f"{name}{number}", "X-Pulsar-uuid: u")
        self.send_header("X-Pulsar-chunk-id", "3")
        self.send_header("Content-Length", "4")
        with suppress(OSError):
            self.end_headers()
            self.wfile.write(b"body")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


def test_any_number_of_properties_is_left_out(site: str) -> None:
    with PoolManager(retries=False) as pool:
        for count in (0, 1, 150, PROPERTIES_MAX):
            answer = pool.request("GET", f"{site}/{count}")
            assert answer.headers["x-pulsar-chunk-id"] == "3"
            assert answer.data == b"body"
            assert not [name for name in answer.headers if "property" in name.lower()]


def test_a_head_without_end_is_given_up(site: str) -> None:
    with (
        PoolManager(retries=False) as pool,
        pytest.raises(urllib3.exceptions.ProtocolError, match="more than 100 headers"),
    ):
        pool.request("GET", f"{site}/{PROPERTIES_MAX + 101}")


def test_what_is_no_http_is_an_error_of_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(4_096)
                peer.sendall(b"SSH-2.0-OpenSSH\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with (
            PoolManager(retries=False) as pool,
            pytest.raises(urllib3.exceptions.ProtocolError, match="BadStatusLine"),
        ):
            pool.request("GET", f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join(10)


def test_it_is_so_with_tls() -> None:
    with PoolManager() as pool:
        plain, tls = (pool.connection_from_url(f"{scheme}://h") for scheme in ("http", "https"))
    assert plain.ConnectionCls.response_class is tls.ConnectionCls.response_class
    assert "pyspark_pulsar" in tls.ConnectionCls.response_class.__module__
