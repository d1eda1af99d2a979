"""Requests over real sockets of this machine: kept connections, bounds, and one sentence each."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headgate.access.admin_api import AdminUrlError, UnreachableError
from headgate.access.client_config import ClientConfig
from headgate.agent import http_transport
from headgate.agent.http_transport import HttpTransport, origin
from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.base.units import MIB
from headgate.testing.clock import ManualClock

MANY = 1_000_000
"""Bytes that an answer may have."""
ZEROS = 64 * MIB


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    peers: set[int]
    released: threading.Event
    packed = b""

    def do_GET(self) -> None:
        self.peers.add(self.client_address[1])
        body = b"x" * 100_000 if self.path == "/large" else b'["a"]'
        if self.path == "/drip":
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            for _ in range(500):
                self.wfile.write(b"x")
                self.released.wait(0.01)
                if self.released.is_set():
                    return
        if self.path == "/interim":
            with suppress(OSError):
                while True:
                    self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
            self.close_connection = True
            return
        if self.path == "/slow-head":
            with suppress(OSError):
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                while not self.released.wait(0.01):
                    self.wfile.write(b"x")
            return
        if self.path == "/twice":
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip, gzip")
            self.send_header("Content-Length", str(len(self.packed)))
            self.end_headers()
            self.wfile.write(self.packed)
            return
        if self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True
            return
        self.send_response(307 if self.path == "/on" else 200)
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Location", "http://elsewhere:1/")
        self.send_header("X-Sent", self.headers.get("Authorization", ""))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    Handler.peers, Handler.released = set(), threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    Handler.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def transport(url: str) -> Iterator[HttpTransport]:
    transport = HttpTransport(ClientConfig(url), SystemClock())
    yield transport
    transport.close()


def test_a_connection_is_kept_and_bodies_are_uncompressed(
    transport: HttpTransport, url: str
) -> None:
    for _ in range(3):
        reply = transport.get(f"{url}/a", {"Authorization": "Bearer t"}, 5.0, MANY)
        assert (reply.status, reply.body, reply.headers["x-sent"]) == (200, b'["a"]', "Bearer t")
    assert len(Handler.peers) == 1


def test_a_redirect_is_the_callers(transport: HttpTransport, url: str) -> None:
    reply = transport.get(f"{url}/on", {}, 5.0, MANY)
    assert (reply.status, reply.headers["location"]) == (307, "http://elsewhere:1/")


def test_an_answer_is_bounded_after_it_is_uncompressed(url: str) -> None:
    transport = HttpTransport(ClientConfig(url), SystemClock())
    with pytest.raises(UnreachableError, match="which is no answer of a broker"):
        transport.get(f"{url}/large", {}, 5.0, 50_000)
    transport.close()


def test_gzip_within_gzip_is_unpacked_to_the_bound_alone(
    transport: HttpTransport, url: str
) -> None:
    """urllib3 before 2.6 unpacks all of it at once: 10 KB became 10 GB."""
    Handler.packed = gzip.compress(gzip.compress(bytes(ZEROS)))
    tracemalloc.start()
    try:
        with pytest.raises(UnreachableError, match="which is no answer of a broker"):
            transport.get(f"{url}/twice", {}, 5.0, MANY)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < ZEROS // 4


def test_an_error_keeps_nothing_of_the_answer(transport: HttpTransport, url: str) -> None:
    """A cluster that sends too much would fill the memory with errors, until a collection."""
    with pytest.raises(UnreachableError) as caught:
        transport.get(f"{url}/large", {}, 5.0, 50_000)
    frames = [entry.frame.f_locals for entry in caught.traceback]
    assert [len(each["body"]) for each in frames if "body" in each] == [0]


class Late(ManualClock):
    """Each reading is a second after the one before."""

    def monotonic_ns(self) -> int:
        self.advance(1_000_000_000)
        return super().monotonic_ns()


def test_an_answer_that_never_ends_is_given_up(url: str) -> None:
    transport = HttpTransport(ClientConfig(url), Late())
    with pytest.raises(UnreachableError, match=r"did not finish its answer within 0.5 s"):
        transport.get(f"{url}/large", {}, 0.5, MANY)
    transport.close()


def test_an_answer_of_single_bytes_is_given_up_in_time(url: str) -> None:
    transport = HttpTransport(ClientConfig(url), SystemClock())
    begin_s = time.monotonic()
    with pytest.raises(UnreachableError, match=r"did not finish its answer within 0.2 s"):
        transport.get(f"{url}/drip", {}, 0.2, MANY)
    assert time.monotonic() - begin_s < 3.0
    transport.close()


@pytest.mark.parametrize("path", ["/interim", "/slow-head"])
def test_a_head_that_never_ends_is_given_up(url: str, path: str) -> None:
    transport = HttpTransport(ClientConfig(url), SystemClock())
    begin_s = time.monotonic()
    with pytest.raises(UnreachableError):
        transport.get(f"{url}{path}", {}, 0.5, MANY)
    assert time.monotonic() - begin_s < 5.0
    Handler.released.set()
    transport.close()


def test_a_cut_answer_is_none(transport: HttpTransport, url: str) -> None:
    with pytest.raises(UnreachableError, match="closed the connection"):
        transport.get(f"{url}/cut", {}, 5.0, MANY)


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        transport = HttpTransport(ClientConfig(url), SystemClock())
        with pytest.raises(UnreachableError, match=rf"^{url} refuses the connection"):
            transport.get(f"{url}/", {}, 5.0, MANY)


def ask_a_silent_server(timeout_s: float) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        transport = HttpTransport(ClientConfig(url), SystemClock())
        with pytest.raises(UnreachableError, match=rf"^{url} did not answer within 0.05 s"):
            transport.get(f"{url}/", {}, timeout_s, MANY)


def test_a_silent_server_is_waited_for_as_long_as_allowed() -> None:
    ask_a_silent_server(0.05)


def test_a_silent_server_is_given_up_before_a_long_answer_would_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A survey may take a minute, and is made while no other is."""
    monkeypatch.setattr(http_transport, "SILENT_S", 0.05)
    ask_a_silent_server(5.0)


def test_tls_to_a_port_without_it(url: str) -> None:
    secure = url.replace("http:", "https:")
    transport = HttpTransport(ClientConfig(secure), SystemClock())
    with pytest.raises(UnreachableError, match=r"does not speak TLS; did you mean http://\?"):
        transport.get(f"{secure}/", {}, 5.0, MANY)


def test_an_unknown_host_is_named() -> None:
    transport = HttpTransport(ClientConfig(), SystemClock())
    with pytest.raises(UnreachableError, match=r"^http://nowhere.invalid:80 cannot be reached: "):
        transport.get("http://nowhere.invalid/", {}, 5.0, MANY)


def test_a_host_that_is_no_name() -> None:
    transport = HttpTransport(ClientConfig(), SystemClock())
    with pytest.raises((AdminUrlError, UnreachableError)):
        transport.get(f"http://{'a' * 300}.b/", {}, 5.0, MANY)


def test_a_file_of_authorities_that_is_none(tmp_path: object) -> None:
    with pytest.raises(InputError, match="--tls-trust-cert-path"):
        HttpTransport(ClientConfig("https://b:1", trust_path=f"{tmp_path}/none"), SystemClock())


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://b", "http://b:80"),
        ("https://b/x?y", "https://b:443"),
        ("http://b:8080/x", "http://b:8080"),
        ("http://[::1]:1/", "http://[::1]:1"),
        ("b:8080", "http://b:8080"),
    ],
)
def test_origins(url: str, found: str) -> None:
    assert origin(url) == found
