"""F5, then F2: a change is refused because the disk is full, and later the power goes.

What was answered with a refusal is not there after the restart, wherever the power went. Two
answers say otherwise and are believed: that the change is stored once there is room, and that the
disk failed so that only a restart shows what it holds. ``docs/promises.md`` has the one case that
is left.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from headgate.ledger.format.records import BATCH_RECORD_BYTES
from headgate.testing import World
from tests.faults.test_f05_full_disk import FULL_S, FullDisk, TrimmedStory
from tests.sim.test_log_and_metadata_cuts import (
    LEDGER,
    Machine,
    boundaries,
    first_of,
)

MAY_COME: Final = ("not stored yet", "until a restart", "TimeoutError")
"""Refusals that say so, and requests that got no answer."""
CUTS: Final = 8
"""For each commit of the metadata that is refused."""


class StrictStory(TrimmedStory):
    """What was refused while the power was on may not be found later."""

    def __init__(self, machine: Machine, seed: int) -> None:
        super().__init__(machine.world, seed)
        self.machine = machine
        self.taken_back: list[str] = []

    async def step(self, fact: str, value: Any, work: Callable[[], Awaitable[Any]]) -> Any:
        before = set(self.allowed[fact])
        done = await super().step(fact, value, work)
        if done is None and not self.machine.off.done():
            refusal = self.refused[-1]
            if not any(text in refusal for text in MAY_COME):
                self.allowed[fact] = before
                self.taken_back.append(refusal)
        return done


def play(coin: int, prepare: Callable[[Machine], None]) -> list[str]:
    """Play until the power goes, start again and look; returns what was refused."""
    with World(3, ledger=LEDGER) as world:
        world.run(world.start())
        machine = Machine(world)
        story = StrictStory(machine, coin)
        prepare(machine)
        playing = world.loop.create_task(story.whole())
        world.run(first_of(playing, machine.off))
        story.stopped = True
        machine.crash(coin)
        world.run(playing)
        world.fs.capacity_bytes = None
        world.run(world.start())
        story.check()
        story.stopped, story.refused = False, []
        world.run(story.publish(2))
        assert story.refused == []
        return story.taken_back


def test_a_change_that_the_metadata_refused() -> None:
    refused: list[str] = []
    for index in range(boundaries()[1]):
        chance = random.Random(index)
        for _ in range(CUTS):
            seconds = chance.uniform(0, 1)

            def prepare(machine: Machine, index: int = index, seconds: float = seconds) -> None:
                machine.refuse_commit = index

                loop, commit = machine.world.loop, machine.world.store.commit

                def watched(writes: Any) -> None:
                    try:
                        commit(writes)
                    except BaseException:
                        loop.call_soon(loop.call_later, seconds, machine.cut)
                        raise

                machine.world.store.commit = watched  # type: ignore[method-assign]

            refused += play(chance.randrange(1 << 20), prepare)
    assert len(refused) > 50, (len(refused), set(refused))


@pytest.mark.parametrize("half", range(2))
def test_changes_on_a_disk_that_stays_full(half: int) -> None:
    refused: list[str] = []
    for index in range(half, len(boundaries()[0]), 2):
        chance = random.Random(index)

        def prepare(machine: Machine, index: int = index) -> None:
            disk = FullDisk(machine.world, index, copies_on_write=index % 4 > 1)
            until_s = chance.uniform(0.1, 1.5 * FULL_S)  # noqa: B023
            plan = disk.plan

            def cut_later(operation: Any) -> int | None:
                if operation.index == disk._first:
                    machine.world.loop.call_later(until_s, machine.cut)
                if operation.kind == "write" and operation.size <= BATCH_RECORD_BYTES:
                    return None  # the head of a refused batch can be wiped
                return plan(operation)

            machine.world.disk.plan = cut_later

        refused += play(chance.randrange(1 << 20), prepare)
    kinds = {text.split(":")[0].split(" ")[0] for text in refused}
    assert kinds >= {"topic", "s", "tenant", "namespace", "policy", "partitions"}, kinds
