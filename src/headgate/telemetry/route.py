"""``GET /metrics`` as a Starlette route. Scrapes that come while one is rendered share its page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from headgate.base.units import KIB
from headgate.broker.authorization import check_allowed
from headgate.metadata.errors import RefusalError
from headgate.telemetry.prometheus import render_parts

if TYPE_CHECKING:
    from headgate.broker.service import Broker

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus 3 refuses a page without it."""

OPERATION: Final = "metrics.read"
"""What a scrape does: the name that authorization decides about."""

WRITE_BYTES: Final = 256 * KIB
"""What is written to the socket at a time."""


class MetricsEndpoint:
    """Renders one page at a time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._rendering: asyncio.Task[list[bytes]] | None = None

    async def __call__(self, request: Request) -> Response:
        """Answer a scrape, if the broker's authorizer allows it."""
        try:
            check_allowed(self._broker.authorizer, OPERATION, "")
        except RefusalError as refusal:
            return Response(refusal.reason, refusal.status, media_type="text/plain")
        parts = await self.page()
        size = sum(len(part) for part in parts)
        return StreamingResponse(
            _stream(parts if request.method != "HEAD" else []),
            headers={"content-length": str(size)},
            media_type=CONTENT_TYPE,
        )

    async def page(self) -> list[bytes]:
        """The page that is being rendered, or else a new one. A scrape that gives up leaves the
        others their page."""
        task = self._rendering
        if task is None:
            task = self._rendering = asyncio.get_running_loop().create_task(
                render_parts(self._broker)
            )
            task.add_done_callback(self._rendered)
        return await asyncio.shield(task)

    def _rendered(self, task: asyncio.Task[list[bytes]]) -> None:
        self._rendering = None
        if not task.cancelled():
            task.exception()  # every scrape may have given up: then nobody else looks at it


async def _stream(parts: list[bytes]) -> AsyncIterator[bytes]:
    gathered: list[bytes] = []
    size = 0
    for part in parts:
        gathered.append(part)
        size += len(part)
        if size >= WRITE_BYTES:
            yield b"".join(gathered)
            await asyncio.sleep(0)
            gathered.clear()
            size = 0
    yield b"".join(gathered)


def metrics_route(broker: Broker) -> Route:
    """The route that ``headgate.app`` mounts beside the admin API; ``/metrics/`` is redirected to
    it by Starlette."""
    return Route("/metrics", MetricsEndpoint(broker).__call__, methods=["GET"])
