"""``headgate pipeline alerts`` over real HTTP: what a target gets, and who sees a token."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from headgate.pipeline.tables.columns import MINUTE_NS
from tests.unit.pipeline.alerts.folder import OPEN, segment, telemetry
from tests.unit.pipeline.report.folder import write


class Target(ThreadingHTTPServer):
    """Notes requests, and answers with a status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.requests: list[tuple[str, str | None, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Target

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, self.headers["Authorization"], body))
        self.send_response(self.server.status)
        self.send_header("Location", f"{self.server.url}/elsewhere")
        self.end_headers()
        self.wfile.write(f"got {self.headers['Authorization']}".encode())

    def log_message(self, *_: Any) -> None:
        """Print no line for each request."""


@pytest.fixture
def target() -> Iterator[Target]:
    server = Target()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def alerts(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headgate.cli", "pipeline", "alerts", "--out", str(root)]
    return subprocess.run(
        [*command, *words], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_target_gets_the_open_backlogs_and_no_other_host_the_token(
    tmp_path: Path, target: Target
) -> None:
    root, token = tmp_path / "tables", tmp_path / "token"
    token.write_text("s3cret\n")
    now_ns = time.time_ns() // MINUTE_NS * MINUTE_NS
    telemetry(root, now_ns)
    write(root, "episodes", [segment(now_ns - 15 * MINUTE_NS, now_ns, **OPEN)])
    words = ["--alertmanager", target.url, "--token-file", str(token), "--kind", "backlog"]
    result = alerts(root, *words)
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == f"Sent to {target.url}: 1 new.\n"
    ((path, authorization, (alert,)),) = target.requests
    assert (path, authorization) == ("/api/v2/alerts", "Bearer s3cret")
    assert alert["labels"]["alertname"] == "HeadgateBacklog"

    target.status = 302
    result = alerts(root, *words)
    assert result.returncode == 1
    assert "answered 302: redirects are not followed; 1 of 1 wait" in result.stderr
    target.status = 401
    result = alerts(root, *words)
    assert (result.returncode, len(target.requests)) == (1, 3)
    assert "answered 401: got Bearer ***; 1 of 1 wait" in result.stderr
    assert "s3cret" not in result.stderr
