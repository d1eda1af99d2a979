"""The agent's HTTP routes: explain as a broker answers it, ``/metrics`` and ``/health``.

Answers are computed in threads, so that the event loop only sends. Every refusal is JSON with a
``reason``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from headgate.agent.cluster_states import WatchedCluster
from headgate.agent.metrics import ClusterPage, PortCertificate, metrics_text
from headgate.agent.page_routes import ROLE_KEY, STRANGER_KEY, PageRoutes
from headgate.agent.shared_history import SharedHistory, UnknownTopicError
from headgate.agent.web_requests import (
    RefusedError,
    as_json,
    count_of,
    flag_of,
    refuse,
    topic_of,
)
from headgate.agent.web_turns import WebTurns
from headgate.base.clock import Clock
from headgate.base.units import NS_PER_MS
from headgate.explain.delivery import Instant
from headgate.explain.reports import EXPLAIN_PATH

HEALTH_PATH: Final = "/health"

SUBSCRIPTIONS_OF_PARTITIONS_MAX: Final = 2_000
"""Subscriptions in the reports on single partitions of a topic, about 2 KB each; further partitions
are left out."""

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_T = TypeVar("_T")


class AgentRoutes:
    """Answers requests about the clusters."""

    def __init__(
        self,
        watches: Sequence[WatchedCluster],
        clock: Clock,
        executor: Executor,
        certificate: Callable[[], PortCertificate | None] = lambda: None,
        network_of: Callable[[str], str] = str,
    ) -> None:
        """``certificate`` tells that of the port; None without TLS. ``network_of`` gives what
        counts as one client of an IP address, where clients have no roles."""
        self._certificate = certificate
        self.watches: Mapping[str, WatchedCluster] = {watch.name: watch for watch in watches}
        self._clock = clock
        self._turns = WebTurns(executor)
        self._network_of = network_of

    def app(self) -> Starlette:
        """The ASGI application."""
        topic = f"{EXPLAIN_PATH}/{{domain}}/{{tenant}}/{{namespace}}/{{topic:path}}"
        return Starlette(
            routes=[
                Route(EXPLAIN_PATH, self.explain_top),
                Route(topic, self.explain_topic),
                *PageRoutes(self).routes(),
                Route("/metrics", self.metrics),
                Route(HEALTH_PATH, self.health),
            ],
            exception_handlers={HTTPException: refuse},
        )

    async def explain_top(self, request: Request) -> Response:
        """The largest backlogs of one cluster."""
        watch, count = self.watch_of(request), count_of(request)
        asked = partial(
            watch.history.top, count, self.instant(), with_timeline=flag_of(request, "timeline")
        )
        report = await self.computed(request, asked)
        # Why looks fail: without it the answer says only that there were none.
        told = [*report.get("notSeen", ()), *watch.not_seen()]
        return as_json(report | {"notSeen": list(dict.fromkeys(told))})

    async def explain_topic(self, request: Request) -> Response:
        """What holds one topic back."""
        watch, name = self.watch_of(request), topic_of(request)
        try:
            report = await self.computed(
                request,
                partial(
                    _topic_report,
                    watch.history,
                    name,
                    self.instant(),
                    flag_of(request, "perPartition"),
                    flag_of(request, "timeline"),
                ),
            )
        except UnknownTopicError as error:
            raise RefusedError(404, str(error)) from error
        return as_json(report)

    async def metrics(self, request: Request) -> Response:
        """What is inferred, and the agent's own figures, for Prometheus."""
        pieces = await self.computed(request, self._metrics_pieces)

        async def sent() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        return StreamingResponse(sent(), media_type=METRICS_TYPE)

    async def health(self, request: Request) -> Response:
        """200 while every watch runs, whatever it sees; 503 if one hangs. Names of clusters and
        what is not seen of them, which may name topics, are for those who may ask everything."""
        stalled = [name for name, watch in self.watches.items() if watch.is_stalled]
        if STRANGER_KEY in request.scope:
            if stalled:
                raise RefusedError(503, "A watch hangs: restart the agent")
            return as_json({"status": "ok"})
        if stalled:
            raise RefusedError(503, f"The watch of {', '.join(stalled)} hangs: restart the agent")
        certificate = self._certificate()
        return as_json(
            {
                "status": "ok",
                "clusters": list(map(self._state, self.watches.values())),
                "tlsProblem": (certificate.problem or None) if certificate else None,
            }
        )

    def _metrics_pieces(self) -> list[bytes]:
        pages = (
            ClusterPage(watch.counts(), watch.history.levels(), watch.history.figures())
            for watch in self.watches.values()
        )
        return [piece.encode() for piece in metrics_text(pages, self._certificate())]

    def _state(self, watch: WatchedCluster) -> dict[str, Any]:
        return {
            "cluster": watch.name,
            "lastLookAgeS": round(watch.last_look_age_s(), 3),
            "notSeen": watch.not_seen(),
        }

    def watch_of(self, request: Request) -> WatchedCluster:
        """The cluster that a request names; the only one need not be named.

        Raises:
            RefusedError: it names none of several, or one that is not watched.
        """
        names = ", ".join(self.watches)
        name = request.query_params.get("cluster")
        if name is None:
            if len(self.watches) > 1:
                raise RefusedError(
                    400, f"cluster is missing: name one of {names} (--cluster NAME, ?cluster=NAME)"
                )
            return next(iter(self.watches.values()))
        if name not in self.watches:
            raise RefusedError(404, f"Cluster {name[:80]} is not watched; {names} is")
        return self.watches[name]

    async def computed(self, request: Request, work: Callable[[], _T]) -> _T:
        """The result of ``work`` for a request, which runs in a thread.

        Raises:
            RefusedError: too many requests wait.
        """
        role = request.scope.get(ROLE_KEY)
        if role is None:
            role = self._network_of(request.client.host) if request.client else ""
        return await self._turns.computed(role, work)

    def instant(self) -> Instant:
        """The present."""
        return Instant(self._clock.monotonic_ns(), self._clock.wall_ns() // NS_PER_MS)


def _topic_report(
    history: SharedHistory, name: str, instant: Instant, per_partition: bool, with_timeline: bool
) -> dict[str, Any]:
    report = history.topic(name, instant, with_timeline=with_timeline)
    if per_partition:
        parts = history.partitions(name)
        found: list[dict[str, Any]] = []
        told = 0
        for each in parts:
            if told >= SUBSCRIPTIONS_OF_PARTITIONS_MAX:
                report["notSeen"].append(f"{len(parts) - len(found):,} more partitions one by one")
                break
            found.append(history.topic(each, instant))
            told += len(found[-1]["subscriptions"])
        report["perPartition"] = found or None
    return report
