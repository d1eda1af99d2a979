"""An agent that watches two fake clusters in virtual time, behind a real HTTP server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import ThreadingHTTPServer
from random import Random
from typing import Any, Final
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Asked

from headgate.access.client_config import ClientConfig
from headgate.agent.cluster_client import ClusterClient
from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.cluster_watch import ClusterWatch
from headgate.agent.look_plan import LookPlan
from headgate.agent.records import Instants, RecordWindows
from headgate.agent.request_budget import RequestBudget
from headgate.agent.scout import Scope, Scout
from headgate.agent.shared_history import SharedHistory
from headgate.agent.web import AgentRoutes
from headgate.base.units import NS_PER_S
from headgate.page.app import PageApp
from headgate.page.files import agent_files
from headgate.testing import ManualClock
from headgate.testing.fake_cluster import (
    FakeCluster,
    FakeSubscription,
    FakeTopic,
    FakeTransport,
    Faults,
    InlineExecutor,
)
from tests.page.scene import HOSTILE, handler
from tests.unit.admin.client import Answer, ask_async

PRODUCTION, STAGING = "production", "staging"
PLAYED_S: Final = 240
TOPICS: Final = "persistent://acme/shop/"
_SURVEYS: Final = ("/admin/v2/brokers", "/admin/v2/broker-stats/topics")


def _topic(
    name: str, published_per_s: float, *subscriptions: FakeSubscription, **more: Any
) -> FakeTopic:
    return FakeTopic(TOPICS + name, published_per_s, list(subscriptions), **more)


def production() -> FakeCluster:
    """Three brokers, and a backlog of each cause."""
    found = FakeCluster(
        [f"broker-{index}.example.com:8080" for index in range(3)],
        is_numbered=True,
        age_ns=600 * NS_PER_S,
    )
    found.settings = {"maxPublishRatePerTopicInMessages": "500"}
    limited = {"dispatchRate": {"dispatchThrottlingRateInMsg": 60, "ratePeriodInSecond": 1}}
    of_subscription = {
        "subscriptionDispatchRate": {"dispatchThrottlingRateInMsg": 30, "ratePeriodInSecond": 1}
    }
    found.add(
        [
            _topic(
                "orders", 100,
                FakeSubscription("billing", acked_per_s=40, permits=0, unacked=500),
            ),
            _topic("audit", 20, FakeSubscription("archive", consumers=0)),
            _topic(
                "emails", 100,
                FakeSubscription("sender", acked_per_s=60, events=(0, 0, 1, 0, 0, 0)),
                policies=limited,
            ),
            _topic(
                "alerts", 100,
                FakeSubscription("pager", acked_per_s=30, events=(1, 0, 0, 0, 0, 0)),
                policies=of_subscription,
            ),
            _topic("stuck", 10, FakeSubscription("reader", acked_per_s=0, is_stuck=True)),
            _topic("quota", 50, FakeSubscription("slow", consumers=0), quota_bytes=5_000_000),
            _topic("held", 500, FakeSubscription("late", acked_per_s=450, permits=0, unacked=100)),
            _topic("fine", 100, FakeSubscription("fast", acked_per_s=100)),
            _topic(HOSTILE, 5, FakeSubscription(HOSTILE, consumers=0)),
            *(
                _topic(
                    f"parted-partition-{number}", 20,
                    FakeSubscription("all", acked_per_s=15, permits=0, unacked=50),
                )
                for number in range(2)
            ),
        ]
    )  # fmt: skip
    found.partitioned[f"{TOPICS}parted"] = 2
    return found


def staging() -> FakeCluster:
    """One broker and one backlog, in a namespace that is named to the agent."""
    found = FakeCluster(["staging.example.com:8080"], age_ns=600 * NS_PER_S)
    found.add([_topic("orders", 5, FakeSubscription("billing", consumers=0))])
    return found


class AgentScene:
    """The agent, its clusters by name, and the URL of its port."""

    def __init__(
        self,
        clusters: Sequence[str] = (PRODUCTION, STAGING),
        guard: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    ) -> None:
        """``guard`` gives what stands before the routes, but not before the page."""
        self.clock = ManualClock()
        self.faults = {name: Faults() for name in clusters}
        if STAGING in self.faults:
            # Not a superuser there.
            self.faults[STAGING].refused = lambda path, _: 403 if path in _SURVEYS else None
        self._clusters: dict[str, FakeCluster] = {}
        self._watches = [self._watch(name) for name in clusters]
        self.requests: list[tuple[str, str]] = []
        """Method and path with query of each request, in order."""
        self.refused: list[str] = []
        """Paths of requests that got no answer, with the status."""
        self.is_reachable = True
        self._executor = ThreadPoolExecutor(2)
        self._app = PageApp(agent_files(), guard(self._routes))
        self.play(PLAYED_S)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    async def _routes(self, scope: Asked, receive: Receive, send: Send) -> None:
        # Each request has an event loop of its own here.
        routes = AgentRoutes(self._watches, self.clock, self._executor).app()
        await routes(scope, receive, send)

    def _watch(self, name: str) -> ClusterWatch:
        cluster = self._clusters[name] = production() if name == PRODUCTION else staging()
        transport = FakeTransport(cluster, self.clock, self.faults[name])
        client = ClusterClient(
            ClientConfig(f"http://{name}.example.com:8080"), {}, self.clock, transport=transport
        )
        history = SharedHistory(ClusterHistory(name))
        budget = RequestBudget()
        scout = Scout(
            client, history, LookPlan(), budget, InlineExecutor(), self.clock, Random(1),
            Scope(namespaces=("acme/shop",)),
        )  # fmt: skip
        start = Instants(self.clock.wall_ns(), self.clock.monotonic_ns())
        windows = RecordWindows(f"agent:{name}", name, "boot", start)
        return ClusterWatch(name, scout, history, windows, self.clock, budget=budget)

    def subscription(self, topic: str, name: str) -> FakeSubscription:
        """One of production's, for a test that changes it."""
        found = self._clusters[PRODUCTION].topics[TOPICS + topic].subscriptions
        return next(each for each in found if each.name == name)

    def play(self, seconds: float) -> None:
        """Let time pass."""
        end_ns = self.clock.monotonic_ns() + round(seconds * NS_PER_S)
        while self.clock.monotonic_ns() < end_ns:
            rest_s = min(watch.step() for watch in self._watches)
            self.clock.advance(round(min(rest_s, 1.0) * NS_PER_S))

    def ask(self, method: str, path: str, body: bytes = b"", headers: Sequence[Any] = ()) -> Answer:
        """One request to the agent's port."""
        self.requests.append((method, path))
        # As a server gives it to an application.
        more = {"headers": list(headers), "path": unquote(path.partition("?")[0])}
        answer = asyncio.run(ask_async(self._app, method, path, body, more))
        if answer.status >= 400:
            self.refused.append(f"{answer.status} {path}")
        return answer

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._executor.shutdown()
