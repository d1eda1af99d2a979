"""A sampler over a whole broker in virtual time, whose windows are taken by hand."""

from __future__ import annotations

import asyncio
from typing import Any

from headgate.broker.service import Broker
from headgate.record.codec import BatchHeader, decode, encode_window
from headgate.record.fields import Kind
from headgate.telemetry.records.row_buffer import Tables
from headgate.telemetry.records.sampler import Sampler
from headgate.telemetry.records.subjects import Instant
from headgate.testing import World
from tests.unit.telemetry.support import rows

Row = dict[str, Any]


class Watch:
    """A sampler whose windows are taken by hand."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.sampler = Sampler(broker.engine, broker, broker.clock, broker, broker.info.broker_id)
        self.ended_ns = broker.clock.wall_ns()

    async def parts(self, *, full: bool = False) -> list[Tables]:
        end_ns = self.broker.clock.wall_ns()
        at = Instant(self.ended_ns, end_ns, full=full)
        self.ended_ns = end_ns
        return [tables async for tables in self.sampler.tables(at)]

    async def window(self, *, full: bool = False) -> dict[Kind, list[Row]]:
        """The rows by kind, as a reader decodes them."""
        start_ns = self.ended_ns
        found: dict[Kind, list[Row]] = {kind: [] for kind in Kind}
        for tables in await self.parts(full=full):
            header = BatchHeader("s", "c", "b", "boot", start_ns, self.ended_ns)
            batches = [decode(data) for data in encode_window(header, 0, tables)]
            for kind in Kind:
                found[kind] += rows(batches, kind)
        return found

    async def after(self, seconds: float, **options: Any) -> dict[Kind, list[Row]]:
        await asyncio.sleep(seconds)
        return await self.window(**options)


async def watch(world: World) -> Watch:
    return Watch(await world.start())


def events(window: dict[Kind, list[Row]]) -> list[str]:
    return [row["event"] for row in window[Kind.EVENT]]


def names(window: dict[Kind, list[Row]], kind: Kind, field: str = "subscription") -> list[str]:
    return [row[field] for row in window[kind]]
