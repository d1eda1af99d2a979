"""Work on many partitions: bounded at a time, and every one is asked."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.admin.partition_batches import AT_ONCE, answers_of, results_of
from headgate.admin.routing import Call, Progress
from headgate.admin.subscriptions import _on_all
from headgate.base.names import TopicName, parse_topic
from headgate.metadata.errors import RefusalError
from tests.unit.admin.fake_facade import FakeFacade

PARTS = [parse_topic(f"t-partition-{index}") for index in range(2 * AT_ONCE + 5)]


class Worker:
    """Counts how many calls run at once."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self.done: list[int] = []

    async def work(self, part: TopicName) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        self.done.append(part.partition)
        if part.partition in (3, 70):
            raise RefusalError(404, f"partition {part.partition}")
        return part.partition


def call_with(facade: FakeFacade) -> Call:
    return cast(Call, SimpleNamespace(facade=facade, progress=Progress()))


def test_some_at_a_time(broker: FakeFacade) -> None:
    worker = Worker()
    answers: list[Any] = asyncio.run(answers_of(call_with(broker), PARTS, worker.work))
    assert worker.most == AT_ONCE
    assert broker.gave_way == 2
    assert len(answers) == len(PARTS)
    failures = [answer for answer in answers if isinstance(answer, RefusalError)]
    assert [str(failure) for failure in failures] == ["partition 3", "partition 70"]
    assert [answer for answer in answers if isinstance(answer, int)] == [
        index for index in range(len(PARTS)) if index not in (3, 70)
    ]


def test_the_first_failure_is_raised_after_all_were_asked(broker: FakeFacade) -> None:
    worker = Worker()
    with pytest.raises(RefusalError, match="partition 3"):
        asyncio.run(results_of(call_with(broker), PARTS, worker.work))
    assert len(worker.done) == len(PARTS)
    assert asyncio.run(results_of(call_with(broker), PARTS[:3], worker.work)) == [0, 1, 2]


def test_a_failure_is_freed_without_a_collection(broker: FakeFacade) -> None:
    """Cycles would stay until a complete collection: errors of 4,096 partitions are 4 MB."""

    async def play() -> None:
        gone: list[weakref.ref[RefusalError]] = []

        async def refuse(part: TopicName) -> None:
            error = RefusalError(404, part.full)
            gone.append(weakref.ref(error))
            try:
                raise error
            finally:
                del error

        call = call_with(broker)
        for work in (results_of(call, PARTS, refuse), _on_all(call, PARTS, refuse, harmless=404)):
            with suppress(RefusalError):
                await work
        await asyncio.sleep(0)
        assert len(gone) == 2 * len(PARTS)
        assert [one() for one in gone if one() is not None] == []

    gc.disable()
    try:
        asyncio.run(play())
    finally:
        gc.enable()
