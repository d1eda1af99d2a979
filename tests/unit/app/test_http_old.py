"""Answers to HTTP/1.0; ``test_http_bounds.py`` has them with a connection."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from starlette.types import Message, Receive, Scope, Send

from headgate.app.http_old import PlainAnswer


class Cycle:
    """What uvicorn expects of an answer."""

    chunked_encoding: bool | None = None
    expected_content_length = 0


async def _receive() -> Message:
    return {"type": "http.request"}


@pytest.mark.parametrize("has_length", [False, True])
def test_only_an_answer_without_a_length_ends_with_its_connection(has_length: bool) -> None:
    cycle = Cycle()
    expected: list[int] = []
    headers = [(b"Content-Length", b"5")] if has_length else []

    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"abc", "more_body": True})
        await send({"type": "http.response.body", "body": b"de"})

    async def send(_message: Message) -> None:
        expected.append(cycle.expected_content_length)

    plain = PlainAnswer(answer)
    plain.cycle = cast(Any, cycle)
    asyncio.run(plain({}, _receive, send))
    assert cycle.chunked_encoding is (None if has_length else False)
    assert expected == ([0, 0, 0] if has_length else [0, 3, 2])
