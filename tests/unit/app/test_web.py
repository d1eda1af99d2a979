"""Routing of requests by path, and the handling of a broken invariant."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.app.web import WebApp
from headgate.base.errors import InvariantError
from headgate.broker.work.turn_meter import TurnMeter
from headgate.testing import ManualClock


def _named(name: str, calls: list[str]) -> ASGIApp:
    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        calls.append(f"{name} {scope['path']}")

    return app


async def _receive() -> Message:
    return {"type": "http.disconnect"}


async def _send(_: Message) -> None:
    return None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/metrics", "metrics /metrics"),
        ("/metrics/", "metrics /metrics"),
        ("/metricsx", "main /metricsx"),
        ("/metrics/x", "main /metrics/x"),
        ("/", "main /"),
        ("", "main "),
    ],
)
def test_exact_paths_have_their_own(path: str, expected: str) -> None:
    calls: list[str] = []
    app = WebApp(_named("main", calls), {"/metrics": _named("metrics", calls)}, calls.append)
    asyncio.run(app({"type": "http", "path": path}, _receive, _send))
    assert calls == [expected]


def test_a_broken_invariant_is_reported() -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise InvariantError("two owners")

    told: list[BaseException] = []
    app = WebApp(broken, {}, told.append)
    with pytest.raises(InvariantError):
        asyncio.run(app({"type": "http", "path": "/"}, _receive, _send))
    assert [str(error) for error in told] == ["two owners"]


def test_a_request_that_fails_unexpectedly_has_a_reason() -> None:
    """Unless its answer has begun: then the connection ends, as the answer is not whole."""

    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise KeyError("x")

    async def broken_later(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise KeyError("x")

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    app = WebApp(broken, {"/later": broken_later}, pytest.fail)
    with pytest.raises(KeyError):
        asyncio.run(app({"type": "http", "path": "/"}, _receive, send))
    assert sent[0]["status"] == 500
    reason = {"reason": "Unexpected KeyError; the broker's log has more"}
    assert json.loads(sent[1]["body"]) == reason
    sent.clear()
    with pytest.raises(KeyError):
        asyncio.run(app({"type": "http", "path": "/later"}, _receive, send))
    assert [message.get("status") for message in sent] == [200]


def test_the_name_of_a_turn_is_one_line() -> None:
    """A path may have any character once it is decoded, and long turns are logged."""
    names: list[str] = []

    class Meter(TurnMeter):
        async def measured(self, name: str, work: Any) -> Any:
            names.append(name)
            return await work

    app = WebApp(_named("main", []), {}, names.append, Meter(ManualClock()))
    path = "/x\n2026-01-01 INFO forged\x1b[31m" + "y" * 10_000
    asyncio.run(app({"type": "http", "path": path}, _receive, _send))
    assert names == [f"a request for /x\ufffd2026-01-01 INFO forged\ufffd[31m{'y' * 170}"]
