"""What the log's directory knows of the metadata follows them, also after a disk that refused."""

from __future__ import annotations

import asyncio
import errno
import logging

import pytest

from headgate.base.errors import InvariantError
from headgate.fs import MemFs, Operation
from headgate.ledger import Identity, look_at_log
from headgate.metadata.rows import TenantRow
from headgate.storage.identity_writer import IdentityWriter
from headgate.testing import World
from headgate.testing.world import DIRECTORY
from tests.unit.ledger.support import DIRECTORY as LOG_DIRECTORY
from tests.unit.ledger.support import open_log

TENANT = TenantRow(allowed_clusters=("standalone",))


def noted(world: World) -> Identity:
    identity = look_at_log(world.fs, DIRECTORY).identity
    assert identity is not None
    return identity


async def change(world: World, name: str) -> None:
    catalog = world.broker.catalog
    await world.broker.writer.commit(catalog.plan_create_tenant(name, TENANT))


def test_a_change_is_noted_within_two_seconds() -> None:
    with World() as world:
        world.run(world.start())
        world.run(change(world, "acme"))
        revision = world.broker.catalog.revision
        assert noted(world).revision < revision
        world.advance(2)
        assert noted(world).revision >= revision
        world.advance(3)
        operations = world.disk.operations_count
        world.advance(10)
        assert world.disk.operations_count == operations  # nothing changed, nothing is written


def test_the_last_batch_is_noted_at_each_checkpoint_and_at_the_end_and_not_at_each_commit() -> None:
    with World() as world:
        world.run(world.start())
        log = world.broker.logs.main.log
        world.advance(3)
        before, operations = noted(world), world.disk.operations_count
        topic = log.enter_topic(log.topic_number_seen + 1)
        log.stage_entry(topic, 1, 1000, 0, b"x")
        batch = log.seal_batch()
        assert batch is not None
        log.commit(batch)
        committed = world.disk.operations_count
        world.advance(3)
        assert world.disk.operations_count == committed > operations
        assert noted(world) == before
        log.checkpoint()
        world.advance(3)
        assert noted(world).batch == log.last_batch > before.batch
        log.stage_entry(topic, 1, 1000, 0, b"x")
        batch = log.seal_batch()
        assert batch is not None
        log.commit(batch)
        world.run(world.stop())
        assert noted(world).batch == log.last_batch


def test_the_last_state_is_noted_at_the_end() -> None:
    with World() as world:
        world.run(world.start())
        world.run(change(world, "acme"))
        catalog = world.broker.catalog
        world.run(world.stop())
        assert noted(world).revision == catalog.revision


def test_what_the_disk_refuses_is_tried_again_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with World() as world:
        world.run(world.start())
        world.advance(2)
        before = noted(world)

        def plan(operation: Operation) -> None:
            if "identity" in operation.path:
                raise OSError(errno.ENOSPC, "no space")

        world.disk.plan = plan
        world.run(change(world, "acme"))
        world.advance(5)
        world.run(world.stop())
        assert noted(world) == before
        told = [r.getMessage() for r in caplog.records if "identity failed" in r.getMessage()]
        assert len(told) == 2  # once while it ran, once at the end
        assert told[0].startswith("writing the metadata's identity fails: writing ")
        world.disk.plan = lambda _: None
        world.run(world.start())
        assert noted(world).revision > before.revision


def test_a_log_that_was_never_bound_gets_nothing() -> None:
    with World() as world:
        world.run(world.start())
        fs = MemFs()
        other = open_log(fs, ())
        keeper = IdentityWriter(world.broker.catalog, {"other": other}, world.lanes[2])
        keeper.write_if_changed(0)
        world.advance(3)
        world.run(keeper.close())
        assert look_at_log(fs, LOG_DIRECTORY).identity is None
        other.close()


def test_an_error_of_ours_is_not_hidden(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    with World() as world:
        world.run(world.start())
        lane = world.lanes[2]
        keeper = IdentityWriter(world.broker.catalog, {"log": world.broker.log}, lane)
        lane.fail_next(InvariantError("ours"))
        keeper.write_if_changed(0)
        with pytest.raises(InvariantError, match="ours"):
            world.run(asyncio.sleep(1))


def test_an_internal_error_is_repeated_and_shown_in_health(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with World() as world:
        world.run(world.start())
        world._watch.close()
        world.run(change(world, "acme"))
        world.lanes[2].fail_next(KeyError("forgotten"))
        writer = world.broker.identity_writer
        writer.write_if_changed(0)
        world.advance(0.01)
        assert writer.internal_errors()
        assert writer.internal_errors()[0] in world.broker.internal_errors()
        world.advance(2)
        assert writer.internal_errors() == []
        assert noted(world).revision == world.broker.catalog.revision
    assert "writing the metadata's identity fails: internal error, KeyError" in caplog.text
