"""A watched cluster without a thread, and the agent's routes over it without a socket."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from headgate.agent.cluster_states import Requests
from headgate.agent.metrics import ClusterCounts, PortCertificate
from headgate.agent.page_routes import ROLE_KEY
from headgate.agent.shared_history import SharedHistory
from headgate.agent.standing import Standing
from headgate.agent.web import AgentRoutes
from headgate.testing import ManualClock
from tests.unit.agent.fake_history import FakeHistory


@dataclass
class Watch:
    """A cluster that a test has looked at."""

    name: str
    history: SharedHistory = field(default_factory=lambda: SharedHistory(FakeHistory()))
    is_stalled: bool = False
    standing: Standing = field(default_factory=Standing)

    def last_look_age_s(self) -> float:
        """Some time."""
        return 1.5

    def not_seen(self) -> list[str]:
        """One thing."""
        return ["the broker's settings"]

    def requests(self) -> Requests:
        """Half of what it may ask."""
        return Requests(25.0, 50, 50, 0)

    def counts(self) -> ClusterCounts:
        """One look."""
        return ClusterCounts(self.name, 1.5, 1, {}, 2, 50, 1, 0)


def ask(
    path: str,
    *watches: Watch,
    method: str = "GET",
    role: str | None = None,
    certificate: PortCertificate | None = None,
) -> tuple[int, Any, str]:
    """Status, body (parsed if it is JSON) and content type."""
    sent: list[dict[str, Any]] = []

    requests = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        return requests.pop() if requests else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    where, _, query = path.partition("?")
    scope = {
        "type": "http", "method": method, "path": where, "raw_path": where.encode(),
        "query_string": query.encode(), "headers": [], "http_version": "1.1", "scheme": "http",
        "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2), "root_path": "",
        "asgi": {"version": "3.0"}, **({} if role is None else {ROLE_KEY: role}),
    }  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        clusters = watches or (Watch("prod"),)
        app = AgentRoutes(clusters, ManualClock(), pool, lambda: certificate).app()
        asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    begin = sent[0]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    kind = dict(begin["headers"])[b"content-type"].decode()
    return begin["status"], json.loads(body) if kind == "application/json" else body, kind
