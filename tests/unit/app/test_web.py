"""Routing of requests by path, and the handling of a broken invariant."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.app.web import WebApp
from headgate.base.errors import InvariantError


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
