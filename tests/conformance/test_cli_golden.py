"""Replays command lines recorded from Pulsar 4.0.8's ``pulsar-admin`` with ``headgate admin``.

``golden/cli-4.0.8.jsonl`` holds the recorded lines whose verb is built (``line`` is the place in
the full record): the requests that were sent, or how it failed. Compared are the requests in their
order, or the exit status and the first line of what was said.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner

from headgate.cli.group import main

RECORD = Path(__file__).parent / "golden" / "cli-4.0.8.jsonl"
LINES = [json.loads(line) for line in RECORD.read_text().splitlines()]

LISTS = re.compile(
    r"/(tenants|clusters|brokers/standalone|namespaces/acme|topics|subscriptions"
    r"|(non-)?persistent/acme/ns(/partitioned)?)(\?|$)"
)
SETS = ("adminRoles", "allowedClusters")
"""Sets to Java, which sends them in any order."""
AFTER_ONE_REQUEST = "partitioned-lookup"
"""Asks about each partition next, and the recording server spoke of none."""
RESET_TIME = re.compile(r"(?<=/resetcursor/)\d{13}\Z")
RESET_BACK_MS = 600_000
"""What the recorded command resets by."""


class Recorder(BaseHTTPRequestHandler):
    """Notes each request and answers as if there were nothing."""

    requests: list[dict[str, Any]]

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        kind = self.headers.get("Content-Type", "")
        self.requests.append(
            {
                "method": self.command,
                "path": self.path,
                "body": self.rfile.read(length).decode(),
                "content_type": kind,
            }
        )
        body = b"[]" if LISTS.search(self.path) else b"{}"
        self.send_response(200 if self.command == "GET" else 204)
        if self.command == "GET":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def recorder() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The URL of a server, and the requests that it got."""
    requests: list[dict[str, Any]] = []
    handler = type("Handler", (Recorder,), {"requests": requests})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("recorded", LINES, ids=[str(line["line"]) for line in LINES])
def test_recorded_command_lines(
    recorder: tuple[str, list[dict[str, Any]]], recorded: dict[str, Any]
) -> None:
    url, requests = recorder
    requests.clear()
    words = recorded["command"].split()
    result = CliRunner().invoke(main, ["admin", "--admin-url", url, *words])
    if "exit" in recorded:
        assert (result.exit_code, requests) == (recorded["exit"], [])
        assert result.stderr.splitlines()[0] == recorded["stderr"]
        return
    assert [_comparable(request) for request in requests] == [
        _comparable(request) for request in recorded["requests"]
    ]
    assert result.exit_code == (1 if AFTER_ONE_REQUEST in words else 0), result.output


def test_the_time_to_reset_to_is_before_now(
    recorder: tuple[str, list[dict[str, Any]]],
) -> None:
    url, requests = recorder
    requests.clear()
    words = ["topics", "reset-cursor", "acme/ns/t1", "-s", "sub", "-t", "10m"]
    before_ms = time.time_ns() // 1_000_000
    CliRunner().invoke(main, ["admin", "--admin-url", url, *words])
    after_ms = time.time_ns() // 1_000_000
    match = RESET_TIME.search(requests[0]["path"])
    assert match is not None
    assert before_ms <= int(match[0]) + RESET_BACK_MS <= after_ms


def _comparable(request: dict[str, Any]) -> dict[str, str]:
    body = request.get("body", "")
    if any(f'"{name}"' in body for name in SETS):
        body = json.dumps({name: sorted(items) for name, items in json.loads(body).items()})
    return {
        "method": request["method"],
        "path": RESET_TIME.sub("TIME", request["path"]),
        "body": body,
        "content_type": request.get("content_type", ""),
    }
