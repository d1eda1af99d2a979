"""What a collector answers is bounded, whatever it is."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from headgate.base.clock import SystemClock
from headgate.telemetry.otel.bounded_session import ANSWER_BYTES_MAX, bounded_session
from headgate.telemetry.otel.measurements import Batch
from headgate.telemetry.otel.otlp import OtlpExporter


class Collector(BaseHTTPRequestHandler):
    """Takes requests; the path says how it answers."""

    protocol_version = "HTTP/1.1"
    connections: set[tuple[str, int]]
    written_bytes: int

    def do_POST(self) -> None:
        type(self).connections.add(self.client_address)
        self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Accept-Encoding"] == "identity"
        if self.path.endswith("/interim"):  # a proxy gets the whole URL
            with suppress(OSError):
                while True:
                    self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
            self.close_connection = True
            return
        if self.path.startswith("/repeats"):
            # What it was sent stands where texts of an answer do.
            repeated = f"{self.path} {self.headers['Authorization']}"
            begin = "HTTP/1.1 400 " if "reason" in self.path else ""
            self.wfile.write(f"{begin}{repeated}\r\nContent-Length: 0\r\n\r\n".encode())
            self.close_connection = True
            return
        status = {"/endless-refusal": 400, "/on": 307}.get(self.path, 200)
        self.send_response(status)
        if self.path == "/":
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
            return
        if self.path == "/packed":
            body = gzip.compress(gzip.compress(bytes(10_000_000)))
            self.send_header("Content-Encoding", "gzip, gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("Content-Length", "1000000000000")
        self.end_headers()
        part = b"x" if self.path == "/drip" else bytes(65_536)
        with suppress(OSError):
            while True:
                self.wfile.write(part)
                type(self).written_bytes += len(part)
                if self.path == "/drip":
                    time.sleep(0.02)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[str]:
    Collector.connections, Collector.written_bytes = set(), 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


@pytest.mark.parametrize(("path", "status"), [("/endless", 200), ("/endless-refusal", 400)])
def test_an_answer_without_end_is_read_to_the_bound(collector: str, path: str, status: int) -> None:
    with bounded_session(SystemClock()) as session:
        answer = session.post(collector + path, data=b"x", timeout=30)
    assert answer.status_code == status
    assert ANSWER_BYTES_MAX <= len(answer.content) < 2 * ANSWER_BYTES_MAX


def test_an_answer_that_drips_ends_in_time(collector: str) -> None:
    with bounded_session(SystemClock()) as session:
        answer = session.post(f"{collector}/drip", data=b"x", timeout=0.3)
    assert answer.status_code == 200
    assert 0 < len(answer.content) < 100


@pytest.mark.parametrize("is_proxy", [False, True], ids=["the collector", "a proxy"])
def test_interim_answers_without_end_are_no_answer(collector: str, is_proxy: bool) -> None:
    with bounded_session(SystemClock()) as session:
        session.trust_env = False
        session.proxies = {"http": collector} if is_proxy else {}
        for _ in range(2):
            with pytest.raises(requests.ConnectionError, match=r"in HTTP \(LongHeadError\)"):
                session.post(
                    "http://elsewhere/interim" if is_proxy else f"{collector}/interim",
                    data=b"x",
                    timeout=30,
                )


def test_what_a_collector_repeats_of_a_request_is_in_no_reason(
    collector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "authorization=Bearer%20hidden")
    exporter = OtlpExporter(
        endpoint=f"{collector}/repeats|reason?key=hidden",
        timeout_s=30,
        cluster="east",
        version="1",
        clock=SystemClock(),
    )
    assert exporter.export(Batch()) == (
        "Failed to export metrics batch code: 400, reason: Bad Request"
    )
    exporter.close()


def test_a_redirect_is_a_failure(collector: str) -> None:
    exporter = OtlpExporter(
        endpoint=f"{collector}/on", timeout_s=30, cluster="east", version="1", clock=SystemClock()
    )
    assert "status 307: redirects are not followed" in exporter.export(Batch())
    exporter.close()


def test_what_is_no_answer_in_http_is_not_repeated_either(collector: str) -> None:
    with (
        bounded_session(SystemClock()) as session,
        pytest.raises(requests.ConnectionError) as caught,
    ):
        session.post(f"{collector}/repeats?key=hidden", data=b"x", timeout=30)
    assert str(caught.value) == "no answer in HTTP (BadStatusLine)"


def test_nobody_listens_without_the_address_in_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        bounded_session(SystemClock()) as session,
        pytest.raises(requests.ConnectionError) as caught,
    ):
        session.post(f"http://127.0.0.1:{port}/a|b?key=hidden", data=b"x", timeout=3)
    assert str(caught.value) == "Connection refused"


def test_an_answer_is_not_unpacked(collector: str) -> None:
    with bounded_session(SystemClock()) as session:
        answer = session.post(f"{collector}/packed", data=b"x", timeout=30)
    assert len(answer.raw.getvalue()) < 1_000


def test_an_ordinary_answer_leaves_the_connection_open(collector: str) -> None:
    with bounded_session(SystemClock()) as session:
        for _ in range(3):
            assert session.post(f"{collector}/", data=b"x", timeout=30).content == b"ok"
    assert len(Collector.connections) == 1


def test_the_exporter_uses_it(collector: str) -> None:
    exporter = OtlpExporter(
        endpoint=f"{collector}/endless",
        timeout_s=30,
        cluster="east",
        version="1",
        clock=SystemClock(),
    )
    assert exporter.export(Batch()) == ""
    exporter.close()
    # What the kernel holds between the two is all that went on beyond the bound.
    assert Collector.written_bytes < 50_000_000
