"""Exports the measurements at every interval, on one thread.

The loop takes a batch, the thread makes a request of it and sends it, and only then the next batch
is taken: with a slow collector an export takes longer, and nothing else waits. If a collector
refuses or does not answer, that export ends; the next one starts an interval later.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from headgate.base.errors import InvariantError
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.storage.lanes import Lane, run_on
from headgate.telemetry.background_task import BackgroundTask
from headgate.telemetry.otel.measurements import BATCH_MEASUREMENTS, Batch, batches

if TYPE_CHECKING:
    from headgate.broker.service import Broker

logger = logging.getLogger("headgate.telemetry")

REST_S: Final = 0.1
"""Rest after a batch of :data:`BATCH_MEASUREMENTS`: making a request of one takes about half as
long, on a thread that shares the interpreter with the loop."""
REST_PART_MIN: Final = 0.2
"""The least part of it, after a batch of few measurements."""

STOP_S: Final = 2.0
"""A stop waits at most so long for the last export."""


class Exporter(Protocol):
    """Sends batches. One thread at a time calls it, except for :meth:`close`."""

    def export(self, batch: Batch) -> str:
        """Send a batch, with retries; the reason if it was not accepted, otherwise empty.
        Blocks."""

    def close(self) -> None:
        """End all retries and send nothing more. Does not block."""


class MetricExport:
    """Exports one broker's measurements from :meth:`start` to :meth:`stop`."""

    def __init__(self, broker: Broker, exporter: Exporter, lane: Lane, *, interval_ms: int) -> None:
        """``exporter`` works on ``lane``; nothing else uses either."""
        self._broker = broker
        self._exporter = exporter
        self._lane = lane
        self._interval_ns = interval_ms * NS_PER_MS
        self._task = BackgroundTask(broker.loop, "metric-export", "the export of metrics ended")
        self._failing = False

    def start(self) -> None:
        """Export for the first time after one interval."""
        self._task.start(self._run())

    async def stop(self) -> None:
        """Export once more, unless the last export failed, and end. Call it while the broker
        runs."""
        if not self._task.is_started:
            return
        await self._task.stop()
        if not self._failing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._export(rest_s=0), STOP_S)
        self._exporter.close()
        self._lane.abandon()

    async def _run(self) -> None:
        clock = self._broker.clock
        due_ns = clock.monotonic_ns()
        while True:
            # An export that took longer than the interval is followed by the next at once.
            due_ns = max(due_ns + self._interval_ns, clock.monotonic_ns())
            await asyncio.sleep((due_ns - clock.monotonic_ns()) / NS_PER_S)
            await self._export(rest_s=REST_S)

    async def _export(self, *, rest_s: float) -> None:
        try:
            export = self._export_all(rest_s=rest_s)
            await self._broker.turns.measured("an export of metrics", export)
        except InvariantError:
            raise
        except Exception:
            logger.exception("an export of metrics failed with an internal error")

    async def _export_all(self, *, rest_s: float) -> None:
        async with aclosing(batches(self._broker)) as taken:
            async for batch in taken:
                reason = await run_on(self._lane, partial(self._exporter.export, batch))
                if reason:
                    self._failed(reason)
                    return
                if rest_s:
                    part = max(batch.size / BATCH_MEASUREMENTS, REST_PART_MIN)
                    await asyncio.sleep(rest_s * part)
        if self._failing:
            self._failing = False
            logger.info("metrics are exported again")

    def _failed(self, reason: str) -> None:
        """Log a failure once, until an export succeeds."""
        if not self._failing:
            self._failing = True
            interval_s = self._interval_ns / NS_PER_S
            logger.warning(
                "the export of metrics fails and is retried every %g s: %s", interval_s, reason
            )
