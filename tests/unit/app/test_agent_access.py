"""Who may ask the agent: nobody from outside without a token, and tokens of named roles alone."""

from __future__ import annotations

import asyncio
import base64
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt
import pytest

from headgate.agent.configuration import PortSettings
from headgate.agent.page_routes import ROLE_KEY
from headgate.agent.web import AgentRoutes
from headgate.app.agent_access import TokenGate, check_agent_address, token_verifier
from headgate.app.listeners import OpenAddressError
from headgate.testing import ManualClock
from tests.unit.agent.watched import Watch

SECRET = b"s" * 32
NOW_S = 1_763_719_200.0


def test_other_machines_need_tokens_or_a_word_of_the_operator() -> None:
    assert check_agent_address(PortSettings(), is_insecure_allowed=False) == ""
    key = PortSettings(host="0.0.0.0", public_key="k", roles=("a",), tls={"tlsKeyFilePath": "k"})
    assert check_agent_address(key, is_insecure_allowed=False) == ""
    plain = PortSettings(host="0.0.0.0", public_key="k", roles=("a",))
    assert "without TLS" in check_agent_address(plain, is_insecure_allowed=False)
    outside = PortSettings(host="0.0.0.0")
    with pytest.raises(OpenAddressError, match="not allowed without tokens"):
        check_agent_address(outside, is_insecure_allowed=False)
    assert "sees the names" in check_agent_address(outside, is_insecure_allowed=True)


async def _app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


EMPTY_SCOPE = {
    "query_string": b"", "http_version": "1.1", "scheme": "http", "root_path": "",
    "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2), "asgi": {"version": "3.0"},
}  # fmt: skip


def ask(
    path: str, authorization: str | None, method: str = "GET", app: Any = _app
) -> tuple[int, str]:
    sent = answered(path, authorization, method, app)
    body = sent[1]["body"]
    return sent[0]["status"], json.loads(body).get("reason", "") if body else ""


def answered(path: str, authorization: str | None, method: str, app: Any) -> list[dict[str, Any]]:
    """What is sent. Each line of ``authorization`` is a header."""
    key = base64.b64encode(SECRET).decode()
    verifier = token_verifier(PortSettings(secret_key=f"data:;base64,{key}", roles=("ops",)))
    assert verifier is not None
    gate = TokenGate(app, verifier, ("ops",), lambda: NOW_S)
    values = [] if authorization is None else authorization.split("\n")
    headers = [(b"authorization", value.encode()) for value in values]
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "path": path, "method": method, "headers": headers}
    asyncio.run(gate(scope, receive, send))
    return sent


def token(role: str, **claims: Any) -> str:
    return jwt.encode({"sub": role, **claims}, SECRET, "HS256")


def test_the_routes_see_the_role() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope.get(ROLE_KEY))
        await _app(scope, receive, send)

    assert ask("/metrics", f"Bearer {token('ops')}", app=app)[0] == 200
    assert ask("/health", None, app=app)[0] == 200
    assert seen == ["ops", None]


def test_health_says_to_strangers_only_whether_the_agent_works() -> None:
    def routed(*watches: Watch) -> Any:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            with ThreadPoolExecutor(1) as pool:
                whole = {**EMPTY_SCOPE, **scope}
                await AgentRoutes(watches, ManualClock(), pool).app()(whole, receive, send)

        return app

    def health(authorization: str | None, *watches: Watch) -> tuple[int, Any]:
        sent = answered("/health", authorization, "GET", routed(*watches))
        return sent[0]["status"], json.loads(sent[1]["body"])

    for wrong in (None, "Bearer nonsense", f"Bearer {token('guest')}"):
        assert health(wrong, Watch("prod")) == (200, {"status": "ok"})
        status, body = health(wrong, Watch("prod", is_stalled=True))
        assert (status, body) == (503, {"reason": "A watch hangs: restart the agent"})
    status, body = health(f"Bearer {token('ops')}", Watch("prod"))
    assert (status, body["clusters"][0]["notSeen"]) == (200, ["the broker's settings"])


def test_a_token_of_a_named_role_may_ask() -> None:
    assert ask("/metrics", f"Bearer {token('ops')}") == (200, "")
    assert ask("/metrics", f"bearer {token('ops', exp=NOW_S + 5)}") == (200, "")


@pytest.mark.parametrize(
    ("authorization", "status", "reason"),
    [
        (None, 401, "A token is needed"),
        ("Basic eDp5", 401, "Only tokens are accepted"),
        ("Bearer ", 401, ""),
        ("Bearer nonsense", 401, ""),
        (f"Bearer {jwt.encode({'sub': 'ops'}, b'other' * 8, 'HS256')}", 401, ""),
        (f"Bearer {token('ops', exp=NOW_S - 5)}", 401, ""),
        (f"Bearer {token('guest')}", 403, "Role 'guest' may not ask this agent"),
        (f"Bearer {token('ops')}\nBearer x", 401, "The request has 2 headers Authorization"),
    ],
)
def test_others_may_not(authorization: str | None, status: int, reason: str) -> None:
    found = ask("/metrics", authorization)
    assert found[0] == status
    assert found[1].startswith(reason)
    assert found[1]


def test_health_needs_no_token_and_head_gets_no_body() -> None:
    assert ask("/health", None) == (200, "")
    assert ask("/metrics", None, "HEAD") == (401, "")


def test_a_key_in_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    verifier = token_verifier(PortSettings(secret_key=path.as_uri(), roles=("ops",)))
    assert verifier is not None
    assert verifier.principal(token("ops"), NOW_S).role == "ops"
    assert token_verifier(PortSettings()) is None
