"""The agent's HTTP routes: explain as a broker answers it, ``/metrics`` and ``/health``.

Answers are computed in threads, so that the event loop only sends. Every refusal is JSON with a
``reason``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from headgate.agent.metrics import (
    ClusterCounts,
    ClusterPage,
    PortCertificate,
    metrics_text,
)
from headgate.agent.shared_history import SharedHistory, UnknownTopicError
from headgate.base.clock import Clock
from headgate.base.names import DOMAINS, PARTITION_SUFFIX, InvalidNameError, parse_topic
from headgate.base.units import NS_PER_MS
from headgate.explain.delivery import Instant
from headgate.explain.reports import COUNT_DEFAULT, COUNT_MAX, EXPLAIN_PATH

CLUSTERS_PATH: Final = "/admin/v2/headgate/clusters"
HEALTH_PATH: Final = "/health"

WAITING_MAX: Final = 32
"""Requests that are computed or wait for that; further ones are refused."""

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_T = TypeVar("_T")


class Watched(Protocol):
    """One cluster that is watched, as :class:`headgate.agent.cluster_watch.ClusterWatch`."""

    name: str
    history: SharedHistory

    @property
    def is_stalled(self) -> bool:
        """Whether the watch hangs."""
        ...

    def last_look_age_s(self) -> float:
        """Seconds since the last look at a topic."""
        ...

    def not_seen(self) -> list[str]:
        """What could not be looked at, in sentences."""
        ...

    def counts(self) -> ClusterCounts:
        """The agent's own figures about the cluster."""
        ...


class RefusedError(HTTPException):
    """A request that gets no answer; the text is the reason."""


class AgentRoutes:
    """Answers requests about the clusters."""

    def __init__(
        self,
        watches: Sequence[Watched],
        clock: Clock,
        executor: Executor,
        certificate: Callable[[], PortCertificate | None] = lambda: None,
    ) -> None:
        """``certificate`` tells that of the port; None without TLS."""
        self._certificate = certificate
        self._watches: Mapping[str, Watched] = {watch.name: watch for watch in watches}
        self._clock = clock
        self._executor = executor
        self._waiting = 0

    def app(self) -> Starlette:
        """The ASGI application."""
        topic = f"{EXPLAIN_PATH}/{{domain}}/{{tenant}}/{{namespace}}/{{topic:path}}"
        return Starlette(
            routes=[
                Route(EXPLAIN_PATH, self.explain_top),
                Route(topic, self.explain_topic),
                Route(CLUSTERS_PATH, self.clusters),
                Route("/metrics", self.metrics),
                Route(HEALTH_PATH, self.health),
            ],
            exception_handlers={HTTPException: _refuse},
        )

    async def explain_top(self, request: Request) -> Response:
        """The largest backlogs of one cluster."""
        watch, count = self._watch(request), _count(request)
        asked = partial(
            watch.history.top, count, self._instant(), with_timeline=_flag(request, "timeline")
        )
        return _json(await self._computed(asked))

    async def explain_topic(self, request: Request) -> Response:
        """What holds one topic back."""
        watch, parts = self._watch(request), request.path_params
        name = _topic("{domain}://{tenant}/{namespace}/{topic}".format(**parts), parts["domain"])
        try:
            report = await self._computed(
                partial(
                    _topic_report,
                    watch.history,
                    name,
                    self._instant(),
                    _flag(request, "perPartition"),
                    _flag(request, "timeline"),
                )
            )
        except UnknownTopicError as error:
            raise RefusedError(404, str(error)) from error
        return _json(report)

    async def clusters(self, _request: Request) -> Response:
        """The clusters by name, with what is not seen of them."""
        return _json([self._state(watch) for watch in self._watches.values()])

    async def metrics(self, _request: Request) -> Response:
        """What is inferred, and the agent's own figures, for Prometheus."""
        pieces = await self._computed(self._metrics_pieces)

        async def sent() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        return StreamingResponse(sent(), media_type=METRICS_TYPE)

    async def health(self, _request: Request) -> Response:
        """200 while every watch runs, whatever it sees; 503 if one hangs."""
        stalled = [name for name, watch in self._watches.items() if watch.is_stalled]
        if stalled:
            raise RefusedError(503, f"The watch of {', '.join(stalled)} hangs: restart the agent")
        certificate = self._certificate()
        return _json(
            {
                "status": "ok",
                "clusters": list(map(self._state, self._watches.values())),
                "tlsProblem": (certificate.problem or None) if certificate else None,
            }
        )

    def _metrics_pieces(self) -> list[bytes]:
        pages = (
            ClusterPage(watch.counts(), watch.history.levels(), watch.history.figures())
            for watch in self._watches.values()
        )
        return [piece.encode() for piece in metrics_text(pages, self._certificate())]

    def _state(self, watch: Watched) -> dict[str, Any]:
        return {
            "cluster": watch.name,
            "lastLookAgeS": round(watch.last_look_age_s(), 3),
            "notSeen": watch.not_seen(),
        }

    def _watch(self, request: Request) -> Watched:
        names = ", ".join(self._watches)
        name = request.query_params.get("cluster")
        if name is None:
            if len(self._watches) > 1:
                raise RefusedError(
                    400, f"cluster is missing: name one of {names} (--cluster NAME, ?cluster=NAME)"
                )
            return next(iter(self._watches.values()))
        if name not in self._watches:
            raise RefusedError(404, f"Cluster {name[:80]} is not watched; {names} is")
        return self._watches[name]

    async def _computed(self, work: Callable[[], _T]) -> _T:
        if self._waiting >= WAITING_MAX:
            raise RefusedError(503, f"{WAITING_MAX} requests wait already: try again later")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._waiting -= 1

    def _instant(self) -> Instant:
        return Instant(self._clock.monotonic_ns(), self._clock.wall_ns() // NS_PER_MS)


def _topic_report(
    history: SharedHistory, name: str, instant: Instant, per_partition: bool, with_timeline: bool
) -> dict[str, Any]:
    report = history.topic(name, instant, with_timeline=with_timeline)
    if per_partition:
        prefix = f"{name}{PARTITION_SUFFIX}"
        parts = [each for each in history.topics() if each.startswith(prefix)]
        parts.sort(key=lambda each: parse_topic(each).partition)
        report["perPartition"] = [history.topic(each, instant) for each in parts] or None
    return report


def _topic(text: str, domain: str) -> str:
    if domain not in DOMAINS:
        raise RefusedError(404, f"There is no domain {domain[:80]!r}: {' and '.join(DOMAINS)} are")
    try:
        return parse_topic(text).full
    except InvalidNameError as error:
        raise RefusedError(400, str(error)) from error


def _count(request: Request) -> int:
    text = request.query_params.get("count", str(COUNT_DEFAULT))
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(COUNT_MAX))
    if not is_number or not 1 <= int(text) <= COUNT_MAX:
        raise RefusedError(400, f"count is {text[:80]!r}: 1 to {COUNT_MAX} is allowed")
    return int(text)


def _flag(request: Request, name: str) -> bool:
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise RefusedError(400, f"{name} is {text[:80]!r}: true or false is allowed")
    return text == "true"


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else str(error)
    if status == 404 and not isinstance(error, RefusedError):
        path = request.url.path[:80]
        detail = f"An agent has no {path}: ask a broker of the cluster"
    headers = error.headers if isinstance(error, HTTPException) else None
    body = msgspec.json.encode({"reason": detail})
    return Response(body, status, headers=headers, media_type="application/json")
