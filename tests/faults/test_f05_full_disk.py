"""F5: the disk is full from any operation on, while clients publish, consume and delete.

Nothing with a receipt is lost, acknowledging and deleting go on, and when there is room again the
broker stores without a restart. With real processes on a small file system it is
``tests/service/test_full_disk.py``.
"""

from __future__ import annotations

import errno
import functools

import pytest

from headgate.base.errors import StorageError
from headgate.fs import Operation
from headgate.metadata.errors import RefusalError
from headgate.metadata.store import Write
from headgate.testing import World
from tests.faults.long_life import Life
from tests.sim.test_log_and_metadata_cuts import LEDGER, NAME, TOPIC, Machine, Story

GROWING = {"create", "allocate", "write"}
FULL_S = 20.0
PUBLISHING = ("sent", "topic", "received")
"""What waits for room or is refused meanwhile."""


class TrimmedStory(Life):
    """The story of all that lies in both stores; what nobody needs may be trimmed in it."""

    whole = Story.whole


class FullDisk:
    """A disk that is full from its operation with this number on, for a while.

    One that copies on writing refuses writes into files that have their room, too.
    """

    def __init__(self, world: World, index: int, *, copies_on_write: bool) -> None:
        self.world = world
        self.is_full = False
        self._copies_on_write = copies_on_write
        self._first = world.disk.operations_count + index
        self._commit = world.store.commit
        world.disk.plan = self.plan
        world.store.commit = self.commit  # type: ignore[method-assign]

    def plan(self, operation: Operation) -> int | None:
        if operation.index == self._first:
            self.is_full = True
            self.world.fs.capacity_bytes = self.world.fs.used_bytes()
            self.world.loop.call_later(FULL_S, self.grow)
        if not (self.is_full and self._copies_on_write) or operation.kind not in GROWING:
            return None
        if operation.kind == "write":
            return operation.size // 2
        raise OSError(errno.ENOSPC, "no space left on device", operation.path)

    def commit(self, writes: list[Write]) -> None:
        if self.is_full and self._copies_on_write:
            raise StorageError("the disk is full", retryable=True)
        self._commit(writes)

    def grow(self) -> None:
        self.is_full = False
        self.world.fs.capacity_bytes = None


@functools.cache
def distinct_operations() -> list[int]:
    """The operations from which on a full disk makes a difference of its own.

    One that takes no room is left out if the next one follows at the same instant, on a disk just
    as full and with the same metadata: the disk that is full from there on is the same.
    """
    found: list[tuple[str, tuple[float, int, int]]] = []
    commits = 0
    with World(3, ledger=LEDGER) as world:
        world.run(world.start())
        commit_before = world.store.commit

        def commit(writes: list[Write]) -> None:
            nonlocal commits
            commits += 1
            commit_before(writes)

        def plan(operation: Operation) -> None:
            moment = world.loop.time(), commits, world.fs.used_bytes()
            found.append((operation.kind, moment))

        world.store.commit = commit  # type: ignore[method-assign]
        world.disk.plan = plan
        story = TrimmedStory(world, 0)
        world.run(story.whole())
        assert story.refused == []
    return [
        index
        for index, (kind, moment) in enumerate(found)
        if kind in GROWING or index == len(found) - 1 or found[index + 1][1] != moment
    ]


@pytest.mark.parametrize("copies_on_write", [False, True])
def test_a_disk_that_is_full_from_each_operation_on(copies_on_write: bool) -> None:
    held = 0
    for index in distinct_operations():
        with World(3, ledger=LEDGER) as world:
            world.run(world.start())
            disk = FullDisk(world, index, copies_on_write=copies_on_write)
            story = TrimmedStory(world, index)
            world.run(story.whole())
            held += bool(story.refused)
            if not copies_on_write:
                assert [r for r in story.refused if not r.startswith(PUBLISHING)] == [], index
            disk.grow()
            world.advance(10)
            story.refused = []
            world.run(story.publish(2))
            assert story.refused == [], index
            assert not world.broker.log.full
            assert story.facade.why_unready() == ""
            assert world.run(world.ask(story.facade.check_health())) == ""
            story.check()
            Machine(world).crash(index)
            world.run(world.start())
            story.check()
    assert held > 20
    assert len(distinct_operations()) > 150


# The start gives back the unused end of the last segment: with 600 bytes more the next one fits.
@pytest.mark.parametrize("free_bytes", [0, 100, 200])
@pytest.mark.parametrize("seed", range(4))
def test_a_start_on_a_disk_that_others_filled_consumes_and_deletes_until_there_is_room(
    free_bytes: int, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has no segment to write into, not even a small one for acknowledgements."""
    with World(3, ledger=LEDGER) as world:
        world.run(world.start())
        story = TrimmedStory(world, seed)
        world.run(story.publish(30))
        world.run(story.subscription(0))
        world.run(story.acknowledge(5))
        world.advance(1)
        assert story.refused == []
        Machine(world).crash(seed)
        world.fs.capacity_bytes = world.fs.used_bytes() + free_bytes
        world.run(world.start())
        story.check()
        assert world.broker.log.full
        assert story.facade.why_unready() == ""
        with pytest.raises(RefusalError) as caught:
            world.run(world.ask(story.facade.check_health()))
        assert caught.value.status == 503
        world.run(story.acknowledge(10))
        world.advance(5)
        said = [r.getMessage() for r in caplog.records if r.name == "headgate.disk"]
        assert len([text for text in said if "producers wait for room, consumers continue" in text])
        # Each message is delivered. An acknowledgement says that it is not stored yet.
        assert all("it is stored once there is space" in text for text in story.refused)
        story.refused = []
        world.run(story.admin("topic", None, lambda f: f.delete_topic(TOPIC, force=True)))
        assert story.refused == []
        world.advance(90)
        assert not world.broker.log.full  # what the topic held is room again
        assert world.run(world.ask(story.facade.check_health())) == ""
        world.run(story.publish(2))
        assert story.refused == []
        story.check()
        Machine(world).crash(seed)
        world.run(world.start())
        story.check()


def test_acknowledgements_before_there_is_a_segment_are_stored_once_there_is_room() -> None:
    with World(3, ledger=LEDGER) as world:
        world.run(world.start())
        story = TrimmedStory(world, 1)
        world.run(story.publish(30))
        world.run(story.subscription(0))
        world.advance(1)
        Machine(world).crash(1)
        world.fs.capacity_bytes = world.fs.used_bytes()
        world.run(world.start())
        world.run(story.acknowledge(10))
        assert world.broker.log.full
        world.fs.capacity_bytes = None
        world.advance(30)
        assert not world.broker.log.full
        Machine(world).crash(1)
        world.run(world.start())
        story.check()
        subscription = world.broker.engine.topics[NAME].subscriptions["s"]
        assert [subscription.acks.is_acked(at) for at in range(10)] == [True] * 10
