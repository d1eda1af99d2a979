"""``GET /metrics`` as a Starlette route.

All scrapes share one compressed page (:mod:`.compressed`). A scrape that comes while a page is
rendered waits for it; one that comes soon after a page that took long gets the same page. A slow
reader does not keep its page: when two later ones exist, the page is dropped and the connection
ends.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from headgate.base.audit_entry import AuditEntry, AuditResult
from headgate.base.gathered import taken
from headgate.base.identity import identity_of
from headgate.base.units import KIB, MS_PER_S
from headgate.broker.authorization import check_allowed
from headgate.metadata.errors import RefusalError
from headgate.telemetry.prometheus.compressed import Compressed
from headgate.telemetry.prometheus.render import render
from headgate.telemetry.prometheus.shown_topics import TopicChoice

if TYPE_CHECKING:
    from headgate.broker.service import Broker

logger = logging.getLogger("headgate.metrics")

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus 3 refuses a page without it."""

METHODS: Final = ("GET", "HEAD")
"""What the page answers to."""

OPERATION: Final = "metrics.read"
"""The operation that authorization decides about."""

WRITE_BYTES: Final = 64 * KIB
"""Bytes of one write to the socket. Each slow reader has a few writes in memory, and is charged
with one or two."""

QUICK_S: Final = 0.25
"""A page that takes less time is rendered for each scrape."""
REST_PARTS: Final = 4
"""Other pages are reused for so many times their rendering time, so that rendering takes at most a
fifth of the broker's time ..."""
REST_S_MAX: Final = 10.0
"""... but no longer than this, which is less than the usual time between scrapes."""

LATE_S: Final = 120.0
"""A page that is ready when no scrape waits for it any more is kept so long for the next one. Else
a page that takes longer than scrapes wait would be made for each, and given to none."""


CODINGS_MAX: Final = 32
"""Codings that are looked at in Accept-Encoding. Hundreds of scrapes may wait for one page and go
on at one instant; the 60,000 that fit into a head take 10 ms."""


def _is_open() -> bool:
    """Of a client of which nothing is known."""
    return True


class MetricsEndpoint:
    """Renders one page at a time, and keeps at most the last two."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._choice = TopicChoice()
        self._making: asyncio.Task[Compressed] | None = None
        self._latest: Compressed | None = None
        """The page that the next scrape may reuse."""
        self._read: list[weakref.ref[Compressed]] = []
        """Pages that may still be read, the newest last."""
        self._fresh_until_s = 0.0
        self._late: Compressed | None = None
        """A page that no scrape has got."""
        self._waiting: list[Callable[[], bool]] = []
        """For each scrape that waits for a page, whether its client is still there."""

    async def __call__(self, request: Request) -> Response:
        """Answer a scrape, if the broker's authorizer allows it."""
        try:
            broker, identity = self._broker, identity_of(request.scope)
            check_allowed(broker.authorizer, broker.counts, identity, OPERATION, "")
        except RefusalError as refusal:
            self._note(request, refusal)
            return failure(refusal.status, refusal.reason)
        timeout_ms = self._broker.settings.metricsServletTimeoutMs
        try:
            page = await asyncio.wait_for(
                self.page(_extension(request, "headgate.is_open") or _is_open),
                timeout_ms / MS_PER_S or None,
            )
        except TimeoutError:
            return failure(
                503,
                f"The page was not ready within metricsServletTimeoutMs={timeout_ms}: the broker "
                "still renders it, and serves it to the next scrape",
            )
        packs = takes_gzip(request.headers.get("accept-encoding", ""))
        size_bytes = page.gzip_bytes if packs else page.size_bytes
        headers = {"content-length": str(size_bytes), "vary": "Accept-Encoding"}
        if packs:
            headers["content-encoding"] = "gzip"
        pieces: Iterator[bytes] = iter(())
        if request.method != "HEAD":
            pieces = page.as_gzip() if packs else page.as_text()
        abort = _extension(request, "headgate.abort")
        return StreamingResponse(
            _stream(page, pieces, abort), headers=headers, media_type=CONTENT_TYPE
        )

    def _note(self, request: Request, refusal: RefusalError) -> None:
        client = request.client
        entry = AuditEntry(
            operation=OPERATION,
            resource="",
            result=AuditResult.REFUSED,
            identity=identity_of(request.scope),
            address=f"{client.host}:{client.port}" if client else "",
            status=refusal.status,
            reason=refusal.reason,
            request=f"{request.method} /metrics",
        )
        self._broker.audit.note(entry)

    async def page(self, is_open: Callable[[], bool] = _is_open) -> Compressed:
        """The latest page if it is fresh or late, the page that is being rendered, or a new one. A
        cancelled scrape does not cancel the page for the others. ``is_open`` says whether the
        client still waits."""
        loop = asyncio.get_running_loop()
        late, self._late = self._late, None
        if late is not None:
            return late
        if self._latest is not None and loop.time() < self._fresh_until_s:
            return self._latest
        if self._making is None:
            self._making = loop.create_task(self._make())
            self._making.add_done_callback(self._made)
        self._waiting.append(is_open)
        try:
            return await asyncio.shield(self._making)
        finally:
            self._waiting.remove(is_open)

    async def _make(self) -> Compressed:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        page = await render(self._broker, self._choice)
        now_s = loop.time()
        took_s = now_s - begun_s
        rest_s = min(REST_PARTS * took_s, REST_S_MAX) if took_s >= QUICK_S else 0.0
        self._fresh_until_s = now_s + rest_s
        before = [old for held in self._read if (old := held()) is not None]
        for old in before[:-1]:
            old.close()
        self._read = [weakref.ref(each) for each in (*before[-1:], page)]
        self._latest = page
        loop.call_later(rest_s, self._let_go, page)
        if not any(is_open() for is_open in self._waiting):
            self._late = page
            loop.call_later(LATE_S, self._give_up, page)
        return page

    def _give_up(self, page: Compressed) -> None:
        """Forget a page that no scrape has got in time."""
        if page is self._late:
            self._late = None

    def _let_go(self, page: Compressed) -> None:
        """Forget a page that no scrape reuses any more; its readers still hold it."""
        if page is self._latest:
            self._latest = None

    def _made(self, task: asyncio.Task[Compressed]) -> None:
        self._making = None
        if not task.cancelled():
            task.exception()  # retrieved here, as every scrape may have been cancelled


def _extension(request: Request, name: str) -> Callable[[], Any] | None:
    """What the server offers to the application beyond ASGI; None without it."""
    found: Callable[[], Any] | None = request.scope.get("extensions", {}).get(name, {}).get("call")
    return found


async def _stream(
    page: Compressed, pieces: Iterator[bytes], abort: Callable[[], None] | None
) -> AsyncIterator[bytes]:
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= WRITE_BYTES:
            yield taken(gathered)
            await asyncio.sleep(0)
            size = 0
    if page.is_closed and abort is not None:
        logger.info("the broker ends a scrape that reads too slowly: two later pages exist")
        abort()
        await asyncio.Event().wait()  # the end of its connection ends this
    yield taken(gathered)


def failure(status: int, reason: str) -> Response:
    """The answer to a scrape that is refused or fails."""
    body = msgspec.json.encode({"reason": reason})
    return Response(body, status, media_type="application/json")


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header allows gzip."""
    for part in accepted.split(",", CODINGS_MAX)[:CODINGS_MAX]:
        name, _, parameters = part.partition(";")
        if name.strip().lower() in ("gzip", "x-gzip", "*"):
            return parameters.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def metrics_route(broker: Broker) -> Route:
    """The route that ``headgate.app`` mounts beside the admin API; ``/metrics/`` is redirected to
    it by Starlette."""
    return Route("/metrics", _Scrapes(MetricsEndpoint(broker)))


class _Scrapes:
    """An ASGI application that has an endpoint answer GET and HEAD."""

    def __init__(self, endpoint: MetricsEndpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        method = scope["method"]
        if method in METHODS:
            response = await self._endpoint(Request(scope, receive))
        else:
            allowed = ", ".join(METHODS)
            response = failure(405, f"Method {method} is not allowed here. Allowed: {allowed}")
            response.headers["allow"] = allowed
        await response(scope, receive, send)
