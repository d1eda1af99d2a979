"""Metadata changes: in order, whole, visible only when durable, together when they fail."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from headgate.base.errors import StorageError
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.errors import RefusalError
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.rows import TenantRow
from headgate.metadata.state import RowChange
from headgate.metadata.store import Write
from headgate.storage.metadata_writer import (
    BYTES_TOGETHER,
    CHANGES_TOGETHER,
    IN_TURN_OF_TENANT_MAX,
    MetadataWriter,
    OutcomeUnknownError,
)
from headgate.testing import SimLane, SimLoop

HICCUP = StorageError("the metadata's disk hiccups", retryable=True)
TENANT = TenantRow(allowed_clusters=("c",))


class Rig:
    """A catalog, its store and its writer on a lane in virtual time."""

    def __init__(self, loop: SimLoop) -> None:
        self.store = MemoryStore()
        self.catalog = Catalog("c", self.store.load())
        self.lane = SimLane(loop, random.Random(3))
        self.applied: list[Change] = []
        self.writer = MetadataWriter(self.catalog, self.store, self.lane, loop, self.applied.append)

    def create(self, tenant: str, row: TenantRow = TENANT) -> asyncio.Future[None]:
        """Plan a tenant and have it committed."""
        change = self.catalog.plan_create_tenant(tenant, row)
        return asyncio.ensure_future(self.writer.commit(change))

    def give_role(self, role: str, tenant: str = "t") -> asyncio.Future[None]:
        """Plan that a tenant has this administrator alone, and have it committed."""
        row = TenantRow(allowed_clusters=("c",), admin_roles=(role,))
        change = self.catalog.plan_update_tenant(tenant, row)
        return asyncio.ensure_future(self.writer.commit(change))

    def stored_roles(self, tenant: str = "t") -> tuple[str, ...]:
        """The administrators that a restart would find."""
        row = Catalog("c", self.store.load()).tenant(tenant)
        assert row is not None
        return row.admin_roles


def play(story: Callable[[Rig], Coroutine[Any, Any, None]]) -> None:
    loop = SimLoop()

    async def whole() -> None:
        rig = Rig(loop)
        first = rig.catalog.plan_first_boot()
        assert first is not None
        await rig.writer.commit(first)
        rig.applied.clear()
        await story(rig)

    with contextlib.closing(loop):
        loop.run_until_complete(whole())


def stored(rig: Rig) -> list[str]:
    """What a restart would find."""
    return [name for name in Catalog("c", rig.store.load()).tenants() if name.startswith("t")]


def visible(rig: Rig) -> list[str]:
    return [name for name in rig.catalog.tenants() if name.startswith("t")]


def test_visible_only_when_durable_and_then_effective() -> None:
    async def story(rig: Rig) -> None:
        rig.lane.freeze()
        creating = rig.create("t")
        await asyncio.sleep(1)
        assert (stored(rig), visible(rig), rig.applied) == ([], [], [])
        rig.lane.thaw()
        await creating
        assert (stored(rig), visible(rig), len(rig.applied)) == (["t"], ["t"], 1)

    play(story)


def test_changes_are_made_in_their_order() -> None:
    async def story(rig: Rig) -> None:
        creating = [rig.create(f"t{index}") for index in range(5)]
        await asyncio.gather(*creating)
        assert stored(rig) == visible(rig) == [f"t{index}" for index in range(5)]
        assert [change.rows[0].key for change in rig.applied] == visible(rig)

    play(story)


def test_changes_that_wait_share_a_transaction() -> None:
    """Each had its own, with a sync of the disk: hundreds of one client held up all others."""

    async def story(rig: Rig) -> None:
        rig.lane.freeze()
        before = rig.store.commits
        creating = [rig.create(f"t{index:03}") for index in range(2 * CHANGES_TOGETHER)]
        await asyncio.sleep(1)
        rig.lane.thaw()
        await asyncio.gather(*creating)
        assert rig.store.commits == before + 2
        assert stored(rig) == visible(rig) == [f"t{index:03}" for index in range(64)]
        assert [change.rows[0].key for change in rig.applied] == visible(rig)

    play(story)


def test_thousands_of_changes_of_one_tenant_hold_up_no_other_one() -> None:
    async def story(rig: Rig) -> None:
        def create(owner: str, tenant: str) -> asyncio.Future[Change]:
            plan = partial(rig.catalog.plan_create_tenant, tenant, TENANT)
            return asyncio.ensure_future(rig.writer.commit_in_turn(owner, plan))

        before = rig.store.commits
        crowd = [create("acme", f"t{number:03}") for number in range(20 * CHANGES_TOGETHER)]
        await asyncio.sleep(0)
        assert rig.catalog.in_flight_count == IN_TURN_OF_TENANT_MAX
        change = await create("globex", "other")
        assert change is rig.applied[-1]
        assert rig.store.commits - before <= 4
        await asyncio.gather(*crowd)
        assert len(visible(rig)) == 20 * CHANGES_TOGETHER

    play(story)


def test_a_change_that_cannot_be_planned_gives_its_turn_back() -> None:
    async def story(rig: Rig) -> None:
        plan = partial(rig.catalog.plan_create_tenant, "t", TENANT)
        await rig.writer.commit_in_turn("acme", plan)
        for _ in range(2 * IN_TURN_OF_TENANT_MAX):
            with pytest.raises(RefusalError):
                await rig.writer.commit_in_turn("acme", plan)

    play(story)


def test_changes_of_clients_that_have_left_keep_their_turn_until_they_are_settled() -> None:
    """Each connection that ended left 64 behind, which counted no more."""

    async def story(rig: Rig) -> None:
        def create(number: int) -> asyncio.Future[Change]:
            plan = partial(rig.catalog.plan_create_tenant, f"t{number:03}", TENANT)
            return asyncio.ensure_future(rig.writer.commit_in_turn("acme", plan))

        for failing in (False, True):
            rig.lane.freeze()
            if failing:
                rig.store.fail_next(HICCUP)
            for connection in range(3):
                begin = (3 * failing + connection) * IN_TURN_OF_TENANT_MAX
                crowd = [create(begin + number) for number in range(IN_TURN_OF_TENANT_MAX)]
                await asyncio.sleep(0)
                assert rig.catalog.in_flight_count == IN_TURN_OF_TENANT_MAX
                for one in crowd:
                    one.cancel()
                await asyncio.wait(crowd)
            rig.lane.thaw()
            await rig.writer.when_earlier_done()
            assert rig.catalog.in_flight_count == 0
            assert len(visible(rig)) == IN_TURN_OF_TENANT_MAX
        await create(999)

    play(story)


def test_a_large_change_has_a_transaction_without_others() -> None:
    async def story(rig: Rig) -> None:
        rig.lane.freeze()
        before = rig.store.commits
        large = TenantRow(allowed_clusters=("c",), admin_roles=("r" * BYTES_TOGETHER,))
        creating = [rig.create("t0"), rig.create("t1", large), rig.create("t2")]
        await asyncio.sleep(1)
        rig.lane.thaw()
        await asyncio.gather(*creating)
        assert rig.store.commits == before + 3
        assert stored(rig) == visible(rig) == ["t0", "t1", "t2"]

    play(story)


def test_a_large_row_that_changes_often_is_written_once() -> None:
    async def story(rig: Rig) -> None:
        await rig.create("t")
        rig.lane.freeze()
        before = rig.store.commits
        roles = [f"{number}" + "r" * (BYTES_TOGETHER // 2) for number in range(8)]
        making = [rig.give_role(role) for role in roles]
        await asyncio.sleep(1)
        rig.lane.thaw()
        await asyncio.gather(*making)
        assert rig.store.commits == before + 1
        assert rig.stored_roles() == (roles[-1],)
        assert len(rig.applied) == 9

    play(story)


def test_a_row_above_the_bound_is_encoded_and_written_once_for_many_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hundreds of small requests that change one row of 2 MB took gigabytes, and held up all others
    for many seconds."""
    encoded: list[str] = []
    write = RowChange.write.fget  # type: ignore[attr-defined]  # of a property

    def counted(row: RowChange) -> Write:
        encoded.append(row.key)
        result: Write = write(row)
        return result

    monkeypatch.setattr(RowChange, "write", property(counted))

    async def story(rig: Rig) -> None:
        await rig.create("t")
        rig.lane.freeze()
        before = rig.store.commits
        encoded.clear()
        roles = [f"{number}" + "r" * 2 * BYTES_TOGETHER for number in range(CHANGES_TOGETHER)]
        making = [rig.give_role(role) for role in roles]
        await asyncio.sleep(1)
        assert encoded == []
        rig.lane.thaw()
        await asyncio.gather(*making)
        assert rig.store.commits == before + 1
        assert encoded.count("t") == 2  # once to know its size, and once the last value
        assert rig.stored_roles() == (roles[-1],)

    play(story)


def test_a_change_that_cannot_be_encoded_fails_with_those_behind_it_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(rig: Rig) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(RowChange, "write", property(_no_memory))
            results = await asyncio.gather(
                *[rig.create(f"t{index}") for index in range(2)], return_exceptions=True
            )
        assert [type(result) for result in results] == [StorageError] * 2
        assert "cannot be encoded: out of memory" in str(results[0])
        assert rig.writer.failed is None
        assert (stored(rig), visible(rig), rig.catalog.in_flight_count) == ([], [], 0)
        await rig.create("t1")
        assert stored(rig) == visible(rig) == ["t1"]

    play(story)


def _no_memory(row: RowChange) -> Write:
    raise MemoryError("out of memory")


def test_what_was_planned_on_a_failed_change_fails_with_it() -> None:
    async def story(rig: Rig) -> None:
        rig.store.fail_next(HICCUP)
        results = await asyncio.gather(
            *[rig.create(f"t{index}") for index in range(3)], return_exceptions=True
        )
        assert [type(result) for result in results] == [StorageError] * 3
        assert (stored(rig), visible(rig), rig.applied) == ([], [], [])
        assert rig.catalog.in_flight_count == 0
        await rig.create("t1")
        assert stored(rig) == visible(rig) == ["t1"]

    play(story)


def test_a_change_planned_between_the_failure_and_its_news_fails_too() -> None:
    async def story(rig: Rig) -> None:
        rig.store.fail_next(HICCUP)
        first = rig.create("t0")
        while rig.lane.jobs_count < 2:
            await asyncio.sleep(0.0001)
        assert not first.done()
        second = rig.create("t1")
        results = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(result) for result in results] == [StorageError] * 2
        assert stored(rig) == visible(rig) == []
        await rig.create("t2")
        assert stored(rig) == visible(rig) == ["t2"]

    play(story)


def test_a_change_that_may_be_stored_is_the_last_until_a_restart() -> None:
    async def story(rig: Rig) -> None:
        rig.store.crash_at(rig.store.commits, keep=True)
        results = await asyncio.gather(
            *[rig.create(f"t{index}") for index in range(2)], return_exceptions=True
        )
        assert [type(result) for result in results] == [OutcomeUnknownError] * 2
        assert rig.writer.failed is results[0]
        assert visible(rig) == []
        assert stored(rig) == ["t0", "t1"]  # as a restart will find them
        rig.writer._store = MemoryStore(rig.store.load())
        with pytest.raises(StorageError, match="until a restart") as caught:
            await rig.create("t2")
        assert not caught.value.retryable
        assert (stored(rig), visible(rig), rig.catalog.in_flight_count) == (["t0", "t1"], [], 0)

    play(story)


def test_a_full_disk_is_no_failure() -> None:
    async def story(rig: Rig) -> None:
        rig.store.fail_next(HICCUP)
        with pytest.raises(StorageError):
            await rig.create("t")
        assert rig.writer.failed is None

    play(story)


def test_a_second_identical_request_is_refused_meanwhile() -> None:
    async def story(rig: Rig) -> None:
        creating = rig.create("t")
        with pytest.raises(RefusalError):
            rig.create("t")
        await creating

    play(story)


def test_a_change_is_followed_when_who_asked_is_gone() -> None:
    async def story(rig: Rig) -> None:
        for failing in (False, True):
            if failing:
                rig.store.fail_next(HICCUP)
            creating = rig.create(f"t{failing}")
            await asyncio.sleep(0)
            creating.cancel()
            await rig.writer.when_earlier_done()
            assert rig.catalog.in_flight_count == 0
        assert stored(rig) == visible(rig) == ["tFalse"]
        assert len(rig.applied) == 1

    play(story)


def test_a_change_that_fails_when_who_asked_is_gone_is_no_error_of_the_loop() -> None:
    """The log had a traceback of it, as of an internal error."""

    async def story(rig: Rig) -> None:
        rig.store.fail_next(StorageError("it hiccups", retryable=True))
        asked = rig.create("t")
        await asyncio.sleep(0)
        asked.cancel()
        await rig.writer.when_earlier_done()
        gc.collect()
        await asyncio.sleep(1)  # the loop ends the test with an error that nobody looked at

    play(story)


def test_settled_waits_for_what_was_submitted_before() -> None:
    async def story(rig: Rig) -> None:
        await rig.writer.when_earlier_done()
        creating = rig.create("t")
        settled = asyncio.ensure_future(rig.writer.when_earlier_done())
        await settled
        assert creating.done()
        rig.lane.freeze()
        waiting = asyncio.ensure_future(rig.writer.when_earlier_done())
        await asyncio.sleep(1)
        waiting.cancel()
        rig.lane.thaw()
        await asyncio.sleep(1)
        assert waiting.cancelled()

    play(story)
