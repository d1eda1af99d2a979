"""The address of the page, and a request over a real socket."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from headgate.base.errors import InputError
from headgate.pipeline.options import ServeOptions
from headgate.pipeline.serve.server import check_address, listener, run_serve
from tests.unit.pipeline.report.folder import played


def test_other_machines_are_let_in_only_if_that_is_meant() -> None:
    check_address(ServeOptions("t"))
    check_address(ServeOptions("t", "::1"))
    check_address(ServeOptions("t", "0.0.0.0", is_insecure_allowed=True))
    for host in ("0.0.0.0", "::", "10.0.0.7", "node.example"):
        with pytest.raises(InputError, match="--insecure-listen"):
            check_address(ServeOptions("t", host))


def test_a_port_that_is_taken_is_named() -> None:
    with listener("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} is in use"):
            listener("127.0.0.1", port)
    with pytest.raises(InputError, match="cannot be listened on"):
        listener("no-such-host.invalid", 0)


def test_a_folder_without_tables_is_refused_before_it_listens(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no tables"):
        run_serve(ServeOptions(str(tmp_path), port=0), io.StringIO())


def _answer_to_endless_head(port: int) -> bytes:
    """What the server says before it ends the connection of a client that sends a long header."""
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        found = b""
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                client.sendall(b"x" * 65_536)
            raise AssertionError("6 MiB of one header were taken")
        with contextlib.suppress(ConnectionError):
            found = client.recv(65_536)
        return found[:12]


def test_it_serves_until_it_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(tmp_path)
    answers: list[Any] = []
    run = uvicorn.Server.run

    def run_and_ask(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        port = sockets[0].getsockname()[1]

        def ask() -> None:
            url = f"http://127.0.0.1:{port}/admin/v2/headgate/history"
            with urllib.request.urlopen(url, timeout=30) as reply:
                answers.append(json.load(reply))
            answers.append(_answer_to_endless_head(port))
            server.should_exit = True

        asking = threading.Thread(target=ask)
        asking.start()
        run(server, sockets)
        asking.join(30)

    monkeypatch.setattr(uvicorn.Server, "run", run_and_ask)
    err = io.StringIO()
    run_serve(ServeOptions(str(tmp_path), port=0), err)
    assert answers[0]["tables"] == ["intervals", "attribution"]
    assert "has telemetry from 2025-11-21T10:00:00+00:00 to 2025-11-21T10:03:00" in err.getvalue()
    assert "The page is at http://127.0.0.1:" in err.getvalue()
