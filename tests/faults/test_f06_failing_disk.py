"""F6: each operation on the disk fails once with an I/O error, and health and ready say the truth.

No receipt for what was not stored, and never a later "stored" for the same bytes: what follows a
failed sync is judged by the next start. A broker that says that it is ready stores; one that cannot
store says so.
"""

from __future__ import annotations

import errno

import pytest

from headgate.base.errors import HeadgateError
from headgate.fs import Operation
from headgate.metadata.errors import RefusalError
from headgate.testing import World
from tests.sim.test_log_and_metadata_cuts import LEDGER, Machine, Story, boundaries


def fail_at(world: World, index: int, number: int) -> list[str]:
    """One operation fails; returns where its kind will stand."""
    failed: list[str] = []
    first = world.disk.operations_count + index

    def plan(operation: Operation) -> None:
        if operation.index == first:
            failed.append(operation.kind)
            raise OSError(number, "as planned", operation.path)

    world.disk.plan = plan
    return failed


def health(world: World, story: Story) -> str:
    """Why the broker is not healthy; empty if it is."""
    try:
        return world.run(world.ask(story.facade.check_health()))
    except RefusalError as error:
        return error.reason


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_an_error_of_each_operation(number: int) -> None:
    kinds = set[str]()
    ready_count = 0
    for index in range(len(boundaries()[0])):
        with World(3, ledger=LEDGER) as world:
            world.run(world.start())
            failed, story = fail_at(world, index, number), Story(world)
            world.run(story.whole())
            kinds |= set(failed)
            world.advance(5)
            unready, unhealthy = story.facade.why_unready(), health(world, story)
            story.refused = []
            world.run(story.publish(2))
            ready_count += not unready
            if story.refused:
                assert unready, (index, failed, story.refused)
                assert unhealthy
            else:
                assert unready == "", (index, failed)
                assert unhealthy == ""
            Machine(world).crash(index)
            world.run(world.start())
            story.check()
            story.refused = []
            world.run(story.publish(2))
            assert story.refused == []
    assert 20 < ready_count < len(boundaries()[0]) - 20
    assert {"create", "open", "read", "write", "sync", "sync_directory", "allocate", "truncate",
            "rename", "remove"} <= kinds  # fmt: skip


def test_an_error_of_each_operation_of_a_start() -> None:
    story: Story | None = None
    for index in range(60):
        with World(3, ledger=LEDGER) as world:
            world.run(world.start())
            story = Story(world)
            world.run(story.beginning())
            Machine(world).crash(index)
            failed = fail_at(world, index, errno.EIO)
            started = True
            try:
                world.run(world.start())
            except HeadgateError:
                started = False
                world.crash()
                world.run(world.start())
            assert started or failed
            story.check()
