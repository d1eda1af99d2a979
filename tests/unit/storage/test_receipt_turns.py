"""Receipts of commits: tenants take turns, and who waits for a commit does not wait for them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any, cast

from headgate.base.names import parse_topic
from headgate.storage.receipt_turns import ENTRIES_A_STEP, ReceiptTurns


class FakeTopic:
    """A topic, its log and its publish side in one."""

    def __init__(self, name: str, number: int, sent: list[FakeTopic]) -> None:
        self.name = parse_topic(f"persistent://{name}")
        self.number = number
        self.end = self.visible = 0
        self.is_live = True
        self.publishing = self
        self._sent = sent

    def entries_durable(self, _: int, entries_max: int) -> bool:
        assert 0 < entries_max <= min(ENTRIES_A_STEP, self.end - self.visible)
        self._sent += [self] * entries_max
        self.visible += entries_max
        return self.visible < self.end


class Bench:
    def __init__(self, names: tuple[str, ...]) -> None:
        self.sent: list[FakeTopic] = []
        self.topics = [FakeTopic(name, number, self.sent) for number, name in enumerate(names)]
        self.by_number = {topic.number: topic for topic in self.topics}
        self.turns = ReceiptTurns(cast(Any, self))

    def commit(self, counts: dict[int, int], waiting: list[asyncio.Future[None]]) -> None:
        for number, count in counts.items():
            self.topics[number].end += count
        self.turns.add(cast(Any, [self.topics[number] for number in counts]), waiting, 1)


def test_a_later_commit_of_another_tenant_is_not_behind_all_of_an_earlier_one() -> None:
    bench = Bench(("acme/ns/t0", "acme/ns/t1", "globex/ns/t"))
    bench.commit({0: 500, 1: 500}, [])
    steps = bench.turns.steps()
    next(steps)
    bench.commit({2: 1}, [])
    for _ in range(2):
        next(steps)
    assert bench.topics[2].visible == 1
    for _ in steps:
        pass
    assert [topic.visible for topic in bench.topics] == [500, 500, 1]


def test_random_stories_lose_no_receipt_and_tell_nobody_early() -> None:
    loop = asyncio.new_event_loop()
    for seed in range(300):
        story = random.Random(seed)
        bench = Bench(("acme/ns/a", "acme/ns/b", "globex/ns/c", "initech/ns/d"))
        told: list[asyncio.Future[None]] = []
        waiting: list[tuple[asyncio.Future[None], FakeTopic, int]] = []
        steps: Iterator[int] | None = None
        for _ in range(60):
            if story.random() < 0.3:
                counts = {number: story.choice((1, 3, 200)) for number in story.sample(range(4), 2)}
                told.append(loop.create_future())
                bench.commit(counts, [told[-1]])
            elif story.random() < 0.2:
                topic = story.choice(bench.topics)
                waiting.append((loop.create_future(), topic, topic.end))
                bench.turns.add_waiting(cast(Any, topic), waiting[-1][0])
            elif story.random() < 0.02:
                bench.topics[story.randrange(4)].is_live = False
            elif steps is None or next(steps, None) is None:
                steps = bench.turns.steps()
            for future, topic, end in waiting:
                assert not (future.done() and topic.is_live) or topic.visible >= end
        for _ in bench.turns.steps():
            pass
        assert all(future.done() for future in told)
        assert all(future.done() for future, _, _ in waiting)
        assert all(topic.visible == topic.end for topic in bench.topics if topic.is_live)
    loop.close()


def test_who_waits_for_a_commit_or_for_its_own_receipts_is_not_behind_those_of_others() -> None:
    loop = asyncio.new_event_loop()
    bench = Bench(("acme/ns/t", "globex/ns/t"))
    durable, answered = loop.create_future(), loop.create_future()
    bench.commit({0: 10_000}, [])
    steps = bench.turns.steps()
    next(steps)
    bench.commit({1: 1}, [durable])
    bench.turns.add_waiting(cast(Any, bench.topics[1]), answered)
    next(steps)
    assert durable.done()
    assert not answered.done()
    for _ in range(4):
        next(steps)
    assert answered.done()
    assert bench.topics[1].visible == 1
    assert bench.topics[0].visible < 1_000
    loop.close()


def test_very_many_who_waited_for_a_commit_do_not_hold_up_receipts() -> None:
    loop = asyncio.new_event_loop()
    bench = Bench(("acme/ns/t",))
    waiting = [loop.create_future() for _ in range(10_000)]
    bench.commit({0: 1}, waiting)
    steps = bench.turns.steps()
    for _ in range(2):
        next(steps)
    assert bench.topics[0].visible == 1
    for _ in steps:
        pass
    assert all(future.done() for future in waiting)
    loop.close()
