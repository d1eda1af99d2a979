"""The agent's routes that views of the page ask beside explain, with the paths of a broker's.

What a broker alone can know has no route here: its memory, its threads, adaptive throttling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headgate.agent.cluster_states import TotalsReports, WatchedCluster, state_report
from headgate.agent.shared_history import UnknownTopicError
from headgate.agent.web_requests import RefusedError, as_json, count_of, flag_of, topic_of
from headgate.explain.delivery import Instant

_TOPIC: Final = "/admin/v2/{domain}/{tenant}/{namespace}/{topic:path}"

ROLE_KEY: Final = "headgate.role"
"""Of an ASGI scope: the role of the client's token; absent where clients need none."""

STRANGER_KEY: Final = "headgate.stranger"
"""Of an ASGI scope: present if a client that needs a token has none, or not one of a role that may
ask."""

_T = TypeVar("_T")


class Asked(Protocol):
    """The clusters, and a thread to compute in, as :class:`headgate.agent.web.AgentRoutes`."""

    @property
    def watches(self) -> Mapping[str, WatchedCluster]:
        """By name."""
        ...

    def watch_of(self, request: Request) -> WatchedCluster:
        """The cluster that a request names."""
        ...

    async def computed(self, request: Request, work: Callable[[], _T]) -> _T:
        """The result of ``work`` for a request, which runs in a thread."""
        ...

    def instant(self) -> Instant:
        """The present."""
        ...


class PageRoutes:
    """Answers what views of the page ask."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._totals = TotalsReports()

    def routes(self) -> list[Route]:
        """By path."""
        return [
            Route("/admin/v2/headgate/clusters", self.clusters),
            Route("/admin/v2/headgate/limits", self.limits),
            Route("/admin/v2/headgate/storage", self.storage),
            Route("/admin/v2/headgate/permissions/own", self.own_permissions),
            Route(f"{_TOPIC}/stats", self.stats),
            Route(f"{_TOPIC}/partitioned-stats", self.stats),
        ]

    async def clusters(self, request: Request) -> Response:
        """The clusters by name: whether they answer, and what is not seen of them; with ``totals``
        also their backlogs."""
        instant, with_totals = self._asked.instant(), flag_of(request, "totals")
        watches = list(self._asked.watches.values())

        def reports() -> list[dict[str, Any]]:
            return [
                state_report(watch, instant)
                | ({"totals": self._totals.of(watch, instant)} if with_totals else {})
                for watch in watches
            ]

        return as_json(await self._asked.computed(request, reports))

    async def limits(self, request: Request) -> Response:
        """The limits in force that are known."""
        watch, count = self._asked.watch_of(request), count_of(request)
        work = partial(watch.history.limits, watch.name, count, self._asked.instant())
        return as_json(await self._asked.computed(request, work))

    async def storage(self, request: Request) -> Response:
        """The topics that store most."""
        watch, count = self._asked.watch_of(request), count_of(request)
        work = partial(watch.history.storage, watch.name, count, self._asked.instant())
        return as_json(await self._asked.computed(request, work))

    async def stats(self, request: Request) -> Response:
        """Subscriptions and consumers of a topic, by the last look."""
        watch, name = self._asked.watch_of(request), topic_of(request)
        try:
            found = await self._asked.computed(request, partial(watch.history.stats, name))
        except UnknownTopicError as error:
            raise RefusedError(404, str(error)) from error
        return as_json(found)

    async def own_permissions(self, request: Request) -> Response:
        """Who the client is. It may change nothing: an agent only reads."""
        return as_json({"role": request.scope.get(ROLE_KEY, ""), "allowed": []})
