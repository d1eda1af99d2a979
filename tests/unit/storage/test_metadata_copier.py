"""The copy of the metadata is saved when it is behind, and a refusal is tried again later."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator

import pytest

from headgate.base.errors import InvariantError, StorageError
from headgate.base.units import NS_PER_S
from headgate.storage.metadata_copier import RETRY_NS, MetadataCopier
from headgate.testing import World
from headgate.testing.lanes import SimLane


class FakeCopy:
    """Counts its saves; the next one raises ``error``."""

    def __init__(self) -> None:
        self.is_behind = True
        self.saves = 0
        self.error: BaseException | None = None

    def save(self) -> None:
        for _ in self.save_steps():
            pass

    def save_steps(self) -> Iterator[None]:
        self.saves += 1
        yield
        if self.error is not None:
            raise self.error
        self.is_behind = False


def test_it_saves_only_what_is_behind() -> None:
    with World() as world:
        copy = FakeCopy()
        copier = MetadataCopier(copy, SimLane(world.loop, random.Random(1)))
        for second in range(3):
            copier.save_if_behind(second * NS_PER_S)
            copier.save_if_behind(second * NS_PER_S)  # one at a time
            world.advance(1)
        assert copy.saves == 1
        copy.is_behind = True
        copier.save_if_behind(5 * NS_PER_S)
        world.advance(1)
        assert copy.saves == 2


def test_other_work_of_the_lane_goes_on_between_the_steps() -> None:
    with World() as world:
        done: list[str] = []

        class LongCopy(FakeCopy):
            def save_steps(self) -> Iterator[None]:
                for number in range(3):
                    done.append(f"step {number}")
                    yield
                yield from super().save_steps()

        lane = SimLane(world.loop, random.Random(1))
        copier = MetadataCopier(LongCopy(), lane)
        copier.save_if_behind(0)
        for number in range(2):
            lane.submit(lambda number=number: done.append(f"change {number}"), lambda *_: None)
        copier.save_if_behind(0)  # one at a time
        world.advance(1)
        assert done == ["step 0", "change 0", "change 1", "step 1", "step 2"]


def test_a_refusal_is_tried_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    with World() as world:
        copy = FakeCopy()
        copier = MetadataCopier(copy, SimLane(world.loop, random.Random(1)))
        copy.error = StorageError("no room", retryable=True)
        for second in range(90):
            copier.save_if_behind(second * NS_PER_S)
            world.advance(1)
        assert copy.saves == 90 * NS_PER_S // RETRY_NS
        assert caplog.messages == ["copying the metadata fails: no room"]
        assert copier.internal_errors() == []
        world._watch.close()
        copy.error = KeyError("ours")
        copier.save_if_behind(200 * NS_PER_S)
        world.advance(1)
        assert "KeyError" in copier.internal_errors()[0]


def test_the_last_state_is_saved_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    with World() as world:
        copy = FakeCopy()
        copier = MetadataCopier(copy, SimLane(world.loop, random.Random(1)))
        copy.error = StorageError("no room", retryable=True)
        world.run(copier.close())
        assert caplog.messages == ["closing: no room"]
        copy.error = None
        world.run(copier.close())
        world.run(copier.close())
        assert copy.saves == 2


def test_an_error_of_ours_is_not_hidden(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    with World() as world:
        copy = FakeCopy()
        copy.error = InvariantError("ours")
        copier = MetadataCopier(copy, SimLane(world.loop, random.Random(1)))
        copier.save_if_behind(0)
        with pytest.raises(InvariantError, match="ours"):
            world.run(asyncio.sleep(1))
