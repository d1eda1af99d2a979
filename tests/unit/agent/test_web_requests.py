"""What the agent's routes read of a request."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from headgate.agent.web_requests import RefusedError, count_of, flag_of, refuse, topic_of


def request(query: str = "", path: str = "/x", **parts: str) -> Request:
    return Request(
        {
            "type": "http", "method": "GET", "path": path, "query_string": query.encode(),
            "headers": [], "path_params": parts, "server": ("test", 80), "scheme": "http",
        }
    )  # fmt: skip


def test_a_topic_has_a_domain_and_a_name() -> None:
    parts = {"tenant": "a", "namespace": "b", "topic": "c"}
    assert topic_of(request(domain="persistent", **parts)) == "persistent://a/b/c"
    with pytest.raises(RefusedError) as refused:
        topic_of(request(domain="durable", **parts))
    assert refused.value.status_code == 404
    with pytest.raises(RefusedError) as refused:
        topic_of(request(domain="persistent", tenant="a$", namespace="b", topic="c"))
    assert refused.value.status_code == 400


def test_counts_and_flags_have_defaults_and_bounds() -> None:
    assert (count_of(request()), count_of(request("count=1000"))) == (10, 1000)
    for text in ("0", "1001", "-1", "x", "\u0661"):
        with pytest.raises(RefusedError):
            count_of(request(f"count={text}"))
    assert (flag_of(request(), "on"), flag_of(request("on=true"), "on")) == (False, True)
    with pytest.raises(RefusedError):
        flag_of(request("on=1"), "on")


def test_a_refusal_has_a_reason() -> None:
    def answer(error: Exception) -> tuple[int, str]:
        reply = asyncio.run(refuse(request(path="/admin/v2/headgate/broker"), error))
        return reply.status_code, json.loads(bytes(reply.body))["reason"]

    assert answer(RefusedError(404, "no such cluster")) == (404, "no such cluster")
    assert answer(HTTPException(404)) == (
        404, "An agent has no /admin/v2/headgate/broker: ask a broker of the cluster",
    )  # fmt: skip
    assert answer(ValueError("a bug")) == (500, "a bug")
