"""Rows are gathered by kind, and last rows are bounded."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.record.fields import Kind
from headgate.telemetry.records import row_buffer
from headgate.testing import World
from tests.unit.telemetry.records.watching import watch


def test_last_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_buffer, "LAST_ROWS_MAX", 2)

    async def scenario(world: World) -> None:
        own = await watch(world)
        for i in range(4):
            await own.broker.registry.create(parse_topic(f"persistent://public/default/t{i}"))
        await own.after(1)
        await asyncio.sleep(0.5)
        for topic in list(own.broker.engine.topics.values()):
            own.broker.engine.unload_topic(topic)
        assert len((await own.after(1))[Kind.TOPIC]) == 2
        assert own.sampler.dropped_rows_count == 2

    with World() as world:
        world.run(scenario(world))


def test_rows_are_taken_as_columns_by_kind() -> None:
    buffer = row_buffer.RowBuffer()
    row = tuple(range(len(row_buffer.LIMITER_COLUMNS)))
    buffer.add(Kind.LIMITER, row)
    buffer.add(Kind.TOPIC, None)
    assert buffer.count == 1
    tables = buffer.take(256)
    assert list(tables) == [Kind.LIMITER]
    assert tables[Kind.LIMITER]["subject"] == (1,)
    assert (buffer.take(256), buffer.count) == ({}, 0)


def test_a_last_row_comes_with_the_next_window() -> None:
    buffer = row_buffer.RowBuffer()
    buffer.add_last(Kind.LIMITER, tuple(range(len(row_buffer.LIMITER_COLUMNS))))
    buffer.add_last(Kind.LIMITER, None)
    assert buffer.take(256) == {}
    buffer.begin_window()
    assert list(buffer.take(256)) == [Kind.LIMITER]


def test_not_more_rows_than_asked_for_are_taken_at_a_time() -> None:
    buffer = row_buffer.RowBuffer()
    columns = len(row_buffer.LIMITER_COLUMNS)
    for number in range(10):
        buffer.add(Kind.LIMITER, tuple(range(number, number + columns)))
    taken = [buffer.take(4)[Kind.LIMITER]["subject"] for _ in range(3)]
    assert taken == [(1, 2, 3, 4), (5, 6, 7, 8), (9, 10)]
    assert buffer.count == 0
