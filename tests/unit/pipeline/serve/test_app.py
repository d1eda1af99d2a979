"""Requests of browsers, tools and foreign pages."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import pytest
from starlette.types import ASGIApp, Message

from headgate.base.errors import InputError
from headgate.base.web_hosts import HostNames
from headgate.page.files import history_files
from headgate.pipeline.serve.app import PREFIX, READS_MAX, history_app
from headgate.pipeline.serve.history import History

FILES = history_files()


class FakeHistory:
    """Answers that a test chooses."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.begun = threading.Semaphore(0)

    def about(self, query: Mapping[str, str]) -> dict[str, Any]:
        return {"query": dict(query)}

    def episodes(self, _: Mapping[str, str]) -> dict[str, Any]:
        raise InputError("the parameter is wrong")

    def timelines(self, _: Mapping[str, str]) -> dict[str, Any]:
        raise KeyError("a secret place")

    def forecasts(self, _: Mapping[str, str]) -> dict[str, Any]:
        raise FileNotFoundError(2, "in words", "tables/a-file-that-was-compacted")

    def backtests(self, _: Mapping[str, str]) -> dict[str, Any]:
        return {"use": [float("inf"), 0.5]}

    def timeline(self, _: Mapping[str, str]) -> dict[str, Any]:
        self.begun.release()
        assert self.free.wait(30)
        return {}

    episode = forecast = about


def served(history: FakeHistory, wait_s: float = 10.0) -> ASGIApp:
    return history_app(cast(History, history), FILES, HostNames(["node-1"]), wait_s)


async def asked(
    app: ASGIApp,
    path: str,
    method: str = "GET",
    query: str = "",
    hosts: tuple[str, ...] = ("localhost:1",),
) -> tuple[int, dict[str, str], bytes]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http", "method": method, "path": path, "query_string": query.encode(),
        "headers": [(b"host", host.encode()) for host in hosts], "root_path": "",
        "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 1), "scheme": "http",
    }  # fmt: skip
    # Starlette raises it again, for the server's log.
    with suppress(KeyError):
        await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(each.get("body", b"") for each in sent[1:])


def ask(path: str, *words: Any, **more: Any) -> tuple[int, dict[str, str], Any]:
    status, headers, body = asyncio.run(asked(served(FakeHistory()), path, *words, **more))
    return status, headers, json.loads(body) if body.startswith(b"{") else body


def test_an_answer_is_json_that_no_foreign_page_may_use() -> None:
    status, headers, body = ask(PREFIX, query="a=b%20c")
    assert (status, body) == (200, {"query": {"a": "b c"}})
    assert headers["content-type"] == "application/json"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers


def test_errors_are_reasons() -> None:
    assert ask(f"{PREFIX}/episodes")[::2] == (400, {"reason": "the parameter is wrong"})
    assert ask(f"{PREFIX}/nothing")[::2] == (404, {"reason": "Not Found"})
    status, _, body = ask(f"{PREFIX}/forecasts")
    assert (status, "ask again" in body["reason"]) == (503, True)
    status, _, body = ask(f"{PREFIX}/timelines")
    assert (status, "secret" in body["reason"]) == (500, False)


def test_what_json_has_no_number_for_is_null() -> None:
    assert ask(f"{PREFIX}/backtests")[2] == {"use": [None, 0.5]}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_it_only_reads(method: str) -> None:
    assert ask(PREFIX, method)[0] == 405
    assert ask("/headgate/", method)[0] == 404


def test_the_page_knows_that_its_server_has_the_past_alone() -> None:
    assert ask("/")[0] == 307
    status, headers, body = ask("/headgate/")
    assert (status, b"<!doctype html>" in body) == (200, True)
    assert "script-src 'self'" in headers["content-security-policy"]
    assert ask("/headgate/server.json")[2] == {"live": False, "history": True}


@pytest.mark.parametrize("host", ["127.0.0.1:8081", "[::1]", "node-1", "localhost"])
def test_own_hosts(host: str) -> None:
    assert ask(PREFIX, hosts=(host,))[0] == 200


def test_foreign_hosts_are_refused_also_for_the_page() -> None:
    for path in (PREFIX, "/headgate/", "/"):
        status, headers, body = ask(path, hosts=("evil.example:8081",))
        assert (status, "'evil.example:8081'" in body["reason"]) == (421, True)
        assert headers["cross-origin-resource-policy"] == "same-origin"
    assert ask(PREFIX, hosts=())[0] == 400
    assert ask(PREFIX, hosts=("localhost", "evil.example"))[0] == 400


def test_a_few_answers_are_read_at_once_and_others_are_refused() -> None:
    history = FakeHistory()
    history.free.clear()
    app = served(history, wait_s=0.01)

    async def crowd() -> tuple[int, list[int]]:
        reads = [asyncio.create_task(asked(app, f"{PREFIX}/timeline")) for _ in range(READS_MAX)]
        for _ in reads:
            assert await asyncio.to_thread(history.begun.acquire, timeout=30)
        refused = await asked(app, PREFIX)
        history.free.set()
        return refused[0], [status for status, _, _ in await asyncio.gather(*reads)]

    assert asyncio.run(crowd()) == (503, [200] * READS_MAX)
