"""A fake admin API, which gives prepared answers and records requests."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headgate.cli.group import main


@dataclass
class Reply:
    """What the standard library's client would return."""

    status: int = 204
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    reason: str = "Whatever"

    length: int = 0
    """Bytes that its head announces beyond the body."""

    def read(self, size: int) -> bytes:
        part, self.left = self.left[:size], self.left[size:]
        return part

    def __post_init__(self) -> None:
        self.left = self.body


@dataclass
class FakeServer:
    """Replies in turn, the last one for ever."""

    replies: list[Reply] = field(default_factory=lambda: [Reply()])
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and body of each request."""
    headers: dict[str, str] = field(default_factory=dict)
    """Of the last request."""
    timeout_s: float = 0.0
    """Of the last connection."""
    failure: Exception | None = None

    def answer(self, *values: Any, status: int = 200) -> None:
        """Answer these JSON values in turn."""
        self.replies = [Reply(status, json.dumps(value).encode()) for value in values]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take the place of the standard library's client."""
        server = self

        class Connection:
            def __init__(self, host: str, port: int | None, timeout: float) -> None:
                server.timeout_s = timeout

            def request(
                self,
                method: str,
                path: str,
                body: bytes = b"",
                headers: dict[str, str] | None = None,
            ) -> None:
                server.asked.append((method, path, body.decode()))
                server.headers = headers or {}
                if server.failure is not None:
                    raise server.failure

            def getresponse(self) -> Reply:
                reply = server.replies.pop(0) if len(server.replies) > 1 else server.replies[0]
                return replace(reply)

            def close(self) -> None:
                """Nothing is open."""

        monkeypatch.setattr(http.client, "HTTPConnection", Connection)


def admin(*words: str) -> Result:
    """Carry ``headgate admin`` out."""
    return CliRunner(env={"COLUMNS": "100"}).invoke(main, ["admin", *words], prog_name="headgate")
