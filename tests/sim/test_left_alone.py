"""A broker left alone at the defaults keeps nothing of what came and went."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter, deque

import pytest

from headgate.base import names
from headgate.broker import audit
from headgate.telemetry.prometheus.render import render
from headgate.testing import World

TOPIC = "persistent://public/default/t"
WARM_HOURS = 2
HOURS = 2
PERIOD_S = 600


async def hours(world: World, first: int, count: int) -> None:
    """A topic that goes on, and beside it clients and topics that come and go."""
    client = await world.connect()
    producer, consumer = await client.producer(TOPIC), await client.subscribe(TOPIC, "s")
    for number in range(first, first + count * 3_600 // PERIOD_S):
        await producer.send(b"x" * 100)
        consumer.ack_nowait((await consumer.receive()).position)
        other, name = await world.connect(), f"{TOPIC}{number}"
        passing, reading = await other.producer(name), await other.subscribe(name, "s")
        await passing.send(b"y")
        await reading.ack((await reading.receive()).position)
        await reading.unsubscribe()
        other.close()
        await other.lost
        world.clients.remove(other)
        await asyncio.sleep(PERIOD_S)
        check_disk(world)
    client.close()
    await client.lost
    world.clients.remove(client)
    await asyncio.sleep(PERIOD_S)


def check_disk(world: World) -> None:
    """The disk takes what is retained, half as much again, and four segments."""
    log = world.broker.log
    assert world.fs.used_bytes() <= 1.5 * log.space_use().live_bytes + 4 * log.segment_bytes


def kept() -> tuple[Counter[str], int]:
    """How many objects of each of Headgate's types there are, and the items in all containers."""
    names._remembered.cache_clear()  # bounded, but not full yet
    gc.collect()
    types: Counter[str] = Counter()
    items = 0
    for each in gc.get_objects():
        kind = type(each)
        if str(kind.__module__).startswith("headgate"):
            types[f"{kind.__module__}.{kind.__qualname__}"] += 1
        elif kind in (dict, list, set, deque):
            items += len(each)
    return types, items


def lines_count(caplog: pytest.LogCaptureFixture) -> int:
    """Log lines so far, but for those that an administrator's changes have in the audit log."""
    return sum(record.name != audit.logger.name for record in caplog.records)


def test_what_came_and_went_leaves_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def series_count(world: World) -> int:
        page = b"".join((await render(world.broker)).as_text())
        return page.count(b"\n")

    with World() as world, caplog.at_level(logging.INFO):
        world.run(world.start())
        world.run(hours(world, 0, WARM_HOURS))
        series, lines = world.run(series_count(world)), lines_count(caplog)
        types, items = kept()
        world.run(hours(world, 1_000, HOURS))
        types_after, items_after = kept()
        grown = {name: types_after[name] - types[name] for name in types_after - types}
        assert {name for name, more in grown.items() if more > HOURS} == set()
        # The history of the topic that goes on has a point for each round, up to an hour.
        assert items_after - items < 200
        assert world.run(series_count(world)) == series
        assert lines_count(caplog) - lines <= HOURS
