"""Work on many partitions: bounded at a time, and every one is asked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.admin.partition_batches import AT_ONCE, answers_of, results_of
from headgate.admin.routing import Call
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
    return cast(Call, SimpleNamespace(facade=facade))


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
