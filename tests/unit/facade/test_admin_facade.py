"""The facade over a whole broker: what the recorded exchanges do not ask."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from headgate.base.errors import StorageError
from headgate.base.identity import NOBODY, Identity
from headgate.base.instants import iso_time
from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.engine.subscription import Subscription
from headgate.facade.admin_facade import (
    CHANGES_MAX,
    CLIENT_BYTES,
    REQUESTS_MAX,
    SUBSCRIPTION_BYTES,
    AdminFacade,
)
from headgate.facade.protocol import AtPosition, AtTime, OlderThan
from headgate.ledger import Batch
from headgate.metadata.catalog import Change
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import (
    BacklogQuota,
    DelayedDeliveryPolicy,
    DispatchRate,
    PublishRate,
    Retention,
)
from headgate.metadata.rows import TenantRow
from headgate.observe.stats.fields import StatsOptions
from headgate.testing import ConnectionLostError, SimConsumer, World

T = "persistent://public/default/t"
NAME = parse_topic(T)
SYSTEM = parse_topic("persistent://headgate/telemetry/samples")


class Story:
    """A broker with topic ``T``: five entries, a second apart, and subscription ``s`` at 0."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.broker = world.run(world.start())
        self.facade = AdminFacade(self.broker, self.world.observer)
        self.positions: list[Position] = []
        self.times_ms: list[int] = []
        world.run(self._begin())

    async def _begin(self) -> None:
        self.client = await self.world.connect()
        producer = await self.client.producer(T)
        await self.facade.create_subscription(NAME, "s", AtPosition(LATEST), {})
        for index in range(5):
            self.times_ms.append(self.world.wall_ms())
            self.positions.append(await producer.send(b"%d" % index))
            await asyncio.sleep(1)
        await producer.close()

    @property
    def subscription(self) -> Subscription:
        return self.broker.engine.topics[T].subscriptions["s"]

    @property
    def backlog(self) -> int:
        return self.subscription.backlog_entries

    def restart(self) -> None:
        """Cut the power and start again."""
        self.world.crash()
        self.broker = self.world.run(self.world.start())
        self.facade = AdminFacade(self.broker, self.world.observer)

    async def refused(self, call: object) -> tuple[int, str]:
        with pytest.raises(RefusalError) as caught:
            await call  # type: ignore[misc]
        return caught.value.status, caught.value.reason


@pytest.fixture
def story() -> Iterator[Story]:
    with World() as world:
        yield Story(world)


# Settings and policies ------------------------------------------------------------------------


def test_settings(story: Story) -> None:
    facade = story.facade
    assert "dispatchThrottlingRatePerTopicInMsg" in facade.dynamic_settings()
    assert "clusterName" not in facade.dynamic_settings()
    assert facade.runtime_settings()["allowAutoTopicCreation"] == "true"
    facade.check_setting("dispatchThrottlingRatePerTopicInMsg", "5")
    with pytest.raises(RefusalError, match="dispatchThrottlingRatePerTopicInMsg='x'") as caught:
        facade.check_setting("dispatchThrottlingRatePerTopicInMsg", "x")
    assert caught.value.status == 412


def test_only_a_broker_of_its_own_is_shut_down(story: Story) -> None:
    with pytest.raises(RefusalError, match="part of another process") as caught:
        story.facade.shut_down()
    assert caught.value.status == 405
    asked: list[bool] = []
    alone = AdminFacade(story.broker, story.world.observer, shut_down=lambda: asked.append(True))
    alone.shut_down()
    assert asked == [True]


def test_one_address_without_a_role_of_its_own_has_not_the_turns_of_all_others(
    story: Story,
) -> None:
    """Of ``anonymousUserRole`` 32 slow reads of one address held up those of all others."""
    facade, guest = story.facade, Identity("guest")
    story.broker.settings.anonymousUserRole = "guest"

    async def is_free(identity: Identity, address: str, *, is_read: bool) -> bool:
        try:
            async with asyncio.timeout(1):
                async with facade.turn_to_ask(identity, address, is_read=is_read):
                    if is_read:
                        return True
                    async with facade.turn_to_change("public", identity, address):
                        return True
        except TimeoutError:
            return False

    async def outcome(identity: Identity) -> list[bool]:
        async with AsyncExitStack() as held:
            for _ in range(REQUESTS_MAX):
                await held.enter_async_context(facade.turn_to_ask(identity, "a", is_read=True))
            for _ in range(CHANGES_MAX):
                await held.enter_async_context(facade.turn_to_change("public", identity, "a"))
            return [
                await is_free(identity, address, is_read=is_read)
                for address in ("a", "b")
                for is_read in (True, False)
            ]

    assert story.world.run(outcome(guest)) == [False, False, True, True]
    assert story.world.run(outcome(NOBODY)) == [False, False, True, True]
    # Those of a role are the same at each address.
    assert story.world.run(outcome(Identity("orders"))) == [False] * 4
    assert story.world.run(outcome(Identity("proxy", "guest"))) == [False] * 4


def test_watermarks_are_compared_with_those_that_are_about_to_be(story: Story) -> None:
    """Two updates at once, each well by itself, do not cross them."""
    facade, catalog = story.facade, story.facade.catalog
    low, high = (f"adaptivePublisherThrottlingMemory{end}WatermarkPct" for end in ("Low", "High"))
    with pytest.raises(RefusalError, match=f"{low}='0.9' is not allowed; use ") as caught:
        facade.check_setting(low, "0.9")
    assert caught.value.status == 412
    assert f"below {high} (0.85)" in caught.value.reason
    change = catalog.plan_setting(high, "0.95")
    facade.check_setting(low, "0.9")
    other = catalog.plan_setting(low, "0.9")
    for name, value in ((high, "0.9"), (high, None), (low, "0.95")):
        with pytest.raises(RefusalError, match=f"{name}='[0-9.]+' is not allowed"):
            facade.check_setting(name, value)
    story.world.run(facade.commit(change))
    story.world.run(facade.commit(other))
    assert (facade.runtime_settings()[low], facade.runtime_settings()[high]) == ("0.9", "0.95")
    story.restart()
    assert story.facade.runtime_settings()[low] == "0.9"


def test_a_committed_setting_is_in_force(story: Story) -> None:
    change = story.facade.catalog.plan_setting("dispatchThrottlingRatePerTopicInMsg", "7")
    story.world.run(story.facade.commit(change))
    assert story.facade.runtime_settings()["dispatchThrottlingRatePerTopicInMsg"] == "7"
    found = story.facade.effective_dispatch_rate("topic", NAME)
    assert found == DispatchRate(7, 0, rate_period_in_second=1)


def test_the_dispatch_rate_that_is_enforced(story: Story) -> None:
    facade, catalog = story.facade, story.facade.catalog
    for scope in ("topic", "subscription"):
        assert facade.effective_dispatch_rate(scope, NAME) == DispatchRate(  # type: ignore[arg-type]
            rate_period_in_second=1
        )
    above, own = DispatchRate(10, -1), DispatchRate(-1, 500, rate_period_in_second=5)
    story.world.run(
        facade.commit(
            catalog.plan_namespace_policies(
                NAME.namespace, dispatch_rate=above, subscription_dispatch_rate=above
            )
        )
    )
    assert facade.effective_dispatch_rate("topic", NAME) == above
    assert facade.effective_dispatch_rate("subscription", NAME) == above
    story.world.run(facade.commit(catalog.plan_topic_policies(NAME, dispatch_rate=own)))
    assert facade.effective_dispatch_rate("topic", NAME) == own
    nothing = DispatchRate(-1, -1)
    story.world.run(
        facade.commit(catalog.plan_topic_policies(NAME, subscription_dispatch_rate=nothing))
    )
    assert facade.effective_dispatch_rate("subscription", NAME) == above
    assert not facade.effective_dispatch_rate("topic", SYSTEM).is_limit


def test_the_publish_rate_that_is_enforced(story: Story) -> None:
    facade, catalog = story.facade, story.facade.catalog

    def commit(change: Change) -> PublishRate | None:
        story.world.run(facade.commit(change))
        return facade.effective_publish_rate(NAME)

    assert facade.effective_publish_rate(NAME) is None
    setting = catalog.plan_setting("maxPublishRatePerTopicInMessages", "7")
    assert commit(setting) == PublishRate(7, 0)
    assert facade.effective_publish_rate(SYSTEM) is None
    above, own = PublishRate(10), PublishRate(unlimited=True)
    change = catalog.plan_namespace_policies(NAME.namespace, publish_rate=above)
    assert commit(change) == above
    assert commit(catalog.plan_topic_policies(NAME, publish_rate=own)) == own
    assert commit(catalog.plan_topic_policies(NAME, publish_rate=PublishRate())) == above


def test_the_retention_that_is_enforced(story: Story) -> None:
    facade, catalog = story.facade, story.facade.catalog
    assert facade.effective_retention(NAME) == Retention(0, 0)
    for policy in (Retention(5, 6), Retention(-1, -1)):
        story.world.run(
            facade.commit(catalog.plan_namespace_policies(NAME.namespace, retention=policy))
        )
        assert facade.effective_retention(NAME) == policy
    own = Retention(1, 2)
    story.world.run(facade.commit(catalog.plan_topic_policies(NAME, retention=own)))
    assert facade.effective_retention(NAME) == own
    assert facade.effective_retention(SYSTEM) == Retention(4_320, 1_024)


def test_the_delayed_delivery_that_is_in_force(story: Story) -> None:
    facade, catalog = story.facade, story.facade.catalog
    assert facade.effective_delayed_delivery(NAME) == DelayedDeliveryPolicy(1_000, True, 0)
    own = DelayedDeliveryPolicy(1_000, True, 5)
    story.world.run(facade.commit(catalog.plan_topic_policies(NAME, delayed_delivery=own)))
    assert facade.effective_delayed_delivery(NAME) == own


def test_the_retention_that_nobody_set(story: Story) -> None:
    assert story.facade.broker_retention() == Retention(0, 0)
    settings = story.broker.settings
    settings.defaultRetentionTimeInMinutes, settings.defaultRetentionSizeInMB = 5, 6
    assert story.facade.broker_retention() == Retention(5, 6)
    assert story.facade.effective_retention(NAME) == Retention(5, 6)


def test_the_backlog_quotas_that_are_enforced(story: Story) -> None:
    facade, catalog = story.facade, story.facade.catalog
    nothing = BacklogQuota("producer_request_hold")
    both = {"destination_storage": nothing, "message_age": nothing}
    assert facade.effective_backlog_quotas(NAME) == both
    above = BacklogQuota("consumer_backlog_eviction", -1, 60)
    story.world.run(
        facade.commit(catalog.plan_namespace_quota(NAME.namespace, "message_age", above))
    )
    own = BacklogQuota("producer_exception", 5_000_000)
    retention = facade.broker_retention()
    story.world.run(
        facade.commit(
            catalog.plan_topic_quota(NAME, "destination_storage", own, broker_retention=retention)
        )
    )
    assert facade.effective_backlog_quotas(NAME) == {
        "destination_storage": own, "message_age": above,
    }  # fmt: skip
    story.broker.settings.backlogQuotaDefaultLimitBytes = 7
    assert facade.effective_backlog_quotas(SYSTEM) == both


def test_quotas_are_verified_when_it_returns(story: Story) -> None:
    counts = story.broker.quota_sweep.durations.counts
    before = sum(counts)
    story.world.run(story.facade.check_backlog_quotas())
    assert sum(counts) == before + 1


def test_what_a_first_use_would_create(story: Story) -> None:
    facade, settings = story.facade, story.broker.settings
    assert facade.auto_creation_partitions(NAME) == 0
    assert facade.auto_creation_partitions(SYSTEM) is None
    assert facade.auto_creation_partitions(parse_topic("non-persistent://a/b/c")) is None
    settings.allowAutoTopicCreationType, settings.defaultNumPartitions = "partitioned", 4
    assert facade.auto_creation_partitions(NAME) == 4
    assert facade.auto_creation_partitions(NAME.partition_name(0)) == 0
    settings.allowAutoTopicCreation = False
    assert facade.auto_creation_partitions(NAME) is None


# The broker -----------------------------------------------------------------------------------


def test_health_is_proven_by_a_commit(story: Story) -> None:
    before = story.broker.committer.commits_count
    story.world.run(story.facade.check_health())
    assert story.broker.committer.commits_count == before + 1
    cursors = story.broker.log.statistics().cursors
    story.restart()
    assert story.broker.log.statistics().cursors == cursors
    assert story.facade.is_ready()


def test_ill_health_is_said(story: Story) -> None:
    log = story.broker.log

    def write(batch: Batch) -> None:
        raise StorageError("bad sector", retryable=False)

    log._health.disk_full()
    assert story.world.run(story.refused(story.facade.check_health()))[0] == 503
    log.write_batch = write  # type: ignore[method-assign]
    refusal = story.world.run(story.refused(story.facade.check_health()))
    assert refusal == (500, "bad sector")
    story.broker.is_ready = False
    assert story.world.run(story.refused(story.facade.check_health()))[0] == 503


def test_metadata_that_cannot_be_stored_is_ill_health(story: Story) -> None:
    story.world.store.fail_next(StorageError("the sync of the WAL failed", retryable=False))
    change = story.broker.catalog.plan_create_tenant(
        "t", TenantRow(allowed_clusters=("standalone",))
    )
    with pytest.raises(StorageError, match="the sync of the WAL failed"):
        story.world.run(story.facade.commit(change))
    refusal = story.world.run(story.refused(story.facade.check_health()))
    assert refusal[0] == 500
    assert "the sync of the WAL failed. Changes of tenants" in refusal[1]


def test_explanations_are_asked_of_explain(story: Story) -> None:
    assert isinstance(story.world.run(story.facade.explain_top(10, timelines=True)), dict)
    explained = story.world.run(story.facade.explain_topic(NAME, per_partition=False))
    assert isinstance(explained, dict)
    assert story.world.run(story.facade.explain_limits(10))["limitsTotal"] == 0
    assert story.facade.explain_adaptive(10)["enabled"] is False
    assert story.facade.explain_broker()["connections"] > 0


# Topics ---------------------------------------------------------------------------------------


def test_an_unloaded_topic_stays_in_sight(story: Story) -> None:
    async def unload() -> None:
        consumer = await story.client.subscribe(T, "s", queue_size=0)
        await story.facade.unload_topic(NAME)
        with pytest.raises(ConnectionLostError):
            await consumer.receive()

    before = story.broker.engine.topics[T]
    story.world.run(unload())
    assert story.broker.engine.topics[T] is not before
    assert story.backlog == 5


def test_a_topic_that_vanished_is_not_found(story: Story) -> None:
    async def vanish() -> None:
        await story.facade.delete_topic(NAME, force=False)
        calls = (
            story.facade.topic_stats(NAME, StatsOptions()),
            story.facade.internal_stats(NAME, metadata=False),
            story.facade.last_message(NAME),
            story.facade.skip_messages(NAME, "s", 1),
        )
        for call in calls:
            assert await story.refused(call) == (404, f"Topic {T} not found")

    story.world.run(vanish())


def test_statistics_and_messages(story: Story) -> None:
    run, facade = story.world.run, story.facade
    assert run(facade.topic_stats(NAME, StatsOptions())).subscriptions["s"].msg_backlog == 5
    assert run(facade.internal_stats(NAME, metadata=False)).number_of_entries == 5
    assert run(facade.last_message(NAME)).position == story.positions[-1]
    found = run(facade.message_at(NAME, story.times_ms[2]))
    assert found.position == story.positions[2]
    behind = run(facade.message_at(NAME, story.world.wall_ms()))
    last = story.positions[-1]
    assert behind.position == last._replace(entry_id=last.entry_id + 1)


def test_times_of_requests_are_publish_times_and_ages_are_not(story: Story) -> None:
    run, facade = story.world.run, story.facade
    hour_ms = 3_600_000

    async def publish_late() -> list[Position]:
        producer = await story.client.producer(T)
        await asyncio.sleep(2 * hour_ms / 1_000)
        story.client.wall_ms = lambda: story.world.wall_ms() - hour_ms
        return [await producer.send(b"late"), await producer.send(b"later")]

    late, _ = run(publish_late())
    said_ms = story.client.wall_ms() - 1_000
    assert run(facade.message_at(NAME, said_ms)).position == late
    assert run(facade.message_at(NAME, story.times_ms[-1] + 1)).position == late
    run(facade.reset_cursor(NAME, "s", AtTime(said_ms)))
    assert story.backlog == 2
    run(facade.reset_cursor(NAME, "s", AtTime(story.times_ms[4])))
    assert story.backlog == 3
    assert run(facade.expire_messages(NAME, "s", OlderThan(1_800)))
    assert story.backlog == 2  # they say that they are an hour old, and came just now


def test_an_entry_is_found_at_its_position_alone(story: Story) -> None:
    run, facade, last = story.world.run, story.facade, story.positions[-1]
    entry = run(facade.entry(NAME, last))
    assert (entry.published, entry.batch_size, entry.chunk) == (
        iso_time(story.times_ms[-1]),
        None,
        None,
    )
    story.broker.engine.topics[T].cache.clear()
    assert run(facade.entry(NAME, last)) == entry
    gone = (404, "Message id not found")
    for other in (
        last._replace(entry_id=last.entry_id + 1),
        last._replace(entry_id=-1),
        last._replace(ledger_id=last.ledger_id + 1),
        last._replace(ledger_id=0, entry_id=0),
    ):
        assert run(story.refused(facade.entry(NAME, other))) == gone


def test_a_topic_without_messages_has_no_id_at_any_time(story: Story) -> None:
    other = parse_topic("persistent://public/default/empty")
    story.world.run(story.client.subscribe(other.full, "s"))
    refusal = story.world.run(story.refused(story.facade.message_at(other, 0)))
    assert refusal == (404, "Message ID not found")


# Subscriptions --------------------------------------------------------------------------------


def test_where_a_subscription_begins(story: Story) -> None:
    third = story.positions[2]
    places = {
        "first": (AtPosition(EARLIEST), 5),
        "last": (AtPosition(LATEST), 0),
        "at": (AtPosition(third), 3),
        "after": (AtPosition(third, excluded=True), 2),
        "beyond": (AtPosition(Position(third.ledger_id, 99), excluded=True), 0),
    }
    for name, (place, backlog) in places.items():
        story.world.run(story.facade.create_subscription(NAME, name, place, {"why": name}))
        made = story.broker.engine.topics[T].subscriptions[name]
        assert (made.backlog_entries, made.properties) == (backlog, {"why": name})
    assert set(story.facade.subscriptions(NAME)) == {"s", *places}


def test_of_several_creations_one_succeeds(story: Story) -> None:
    async def race() -> list[BaseException | None]:
        return await asyncio.gather(
            *(
                story.facade.create_subscription(NAME, "n", AtPosition(EARLIEST), {})
                for _ in range(3)
            ),
            return_exceptions=True,
        )

    answers = story.world.run(race())
    refusals = [a for a in answers if isinstance(a, RefusalError)]
    assert (len(refusals), {r.status for r in refusals}) == (2, {409})


def test_a_deletion_with_consumers_needs_force(story: Story) -> None:
    async def delete() -> None:
        await story.client.subscribe(T, "s")
        busy = story.facade.delete_subscription(NAME, "s", force=False)
        assert await story.refused(busy) == (412, "Subscription has active connected consumers")
        await story.facade.delete_subscription(NAME, "s", force=True)
        gone = story.facade.delete_subscription(NAME, "s", force=True)
        assert await story.refused(gone) == (404, f"Subscription s not found for topic {T}")

    story.world.run(delete())


def test_skipping_and_clearing_survive_a_power_cut(story: Story) -> None:
    story.world.run(story.facade.skip_messages(NAME, "s", 2))
    assert story.backlog == 3
    story.restart()
    assert story.backlog == 3
    story.world.run(story.facade.clear_backlog(NAME, "s"))
    story.restart()
    assert story.backlog == 0


def test_a_reset_moves_in_both_directions_and_survives_a_power_cut(story: Story) -> None:
    for place, backlog in (
        (AtPosition(story.positions[3]), 2),
        (AtTime(story.times_ms[1]), 4),
        (AtTime(0), 5),
        (AtTime(story.world.wall_ms() + 1), 0),
    ):
        story.world.run(story.facade.reset_cursor(NAME, "s", place))
        assert story.backlog == backlog
        story.restart()
        assert story.backlog == backlog


def test_a_reset_disconnects_consumers_and_they_come_back(story: Story) -> None:
    async def play() -> SimConsumer:
        consumer = await story.client.subscribe(T, "s")
        for _ in range(5):
            await consumer.receive()
        await story.facade.reset_cursor(NAME, "s", AtPosition(story.positions[4]))
        with pytest.raises(ConnectionLostError):
            await consumer.receive()
        again = await story.client.subscribe(T, "s")
        assert (await again.receive()).payload == b"4"
        return again

    story.world.run(play())


def test_expiry_by_age_and_up_to_a_message(story: Story) -> None:
    run, facade = story.world.run, story.facade
    assert not run(facade.expire_messages(NAME, "s", OlderThan(3_600)))
    assert run(facade.expire_messages(NAME, "s", OlderThan(4)))
    assert story.backlog == 3
    assert run(facade.expire_messages(NAME, "s", AtPosition(story.positions[2])))
    assert story.backlog == 2
    assert not run(facade.expire_messages(NAME, "s", AtPosition(story.positions[2])))
    assert run(facade.expire_messages(NAME, "s", AtPosition(LATEST)))
    assert story.subscription.expired_messages == 5
    story.restart()
    assert story.backlog == 0


def test_what_is_being_closed_asks_to_come_again(story: Story) -> None:
    async def race() -> None:
        topic = story.broker.engine.topics[T]
        topic.fenced = True
        call = story.facade.create_subscription(NAME, "n", AtPosition(EARLIEST), {})
        assert (await story.refused(call))[0] == 503

    story.world.run(race())


def test_large_answers_are_estimated_charged_and_given_back(story: Story) -> None:
    facade, memory = story.facade, story.broker.http_memory

    async def play() -> None:
        before = memory.held_bytes
        alone = facade.answer_bytes(NAME)
        await story.client.subscribe(T, "s")
        await story.client.producer(T)
        assert alone == SUBSCRIPTION_BYTES
        assert facade.answer_bytes(NAME) == alone + 2 * CLIENT_BYTES
        assert facade.answer_bytes(parse_topic(f"{T}-gone")) == 0
        await facade.reserve_answer(1_000)
        assert memory.held_bytes == before + 1_000
        assert story.broker.client_memory.by_kind()["http"] == memory.held_bytes
        facade.release_answer(1_000)
        assert memory.held_bytes == before
        turns = []
        begin = story.broker.engine.begin_turn

        def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
            turns.append(now_ns)
            begin(now_ns, now_ms, log_ms)

        story.broker.engine.begin_turn = begun  # type: ignore[method-assign]
        await facade.give_way()
        assert turns

    story.world.run(play())


def test_much_work_of_two_requests_is_not_done_in_one_iteration(story: Story) -> None:
    granted: list[int] = []

    async def much(number: int) -> None:
        await story.facade.give_way(100)
        granted.append(number)

    async def play() -> None:
        tasks = [asyncio.ensure_future(much(number)) for number in range(8)]
        before = 0
        while len(granted) < len(tasks):
            await asyncio.sleep(0)
            assert len(granted) - before <= 1
            before = len(granted)

    story.world.run(play())


def test_the_estimate_covers_what_statistics_take(story: Story) -> None:
    """Many subscriptions and consumers: what the objects take while they are sent."""

    async def play() -> tuple[int, int]:
        for number in range(100):
            await facade.create_subscription(NAME, f"more{number}", AtPosition(LATEST), {})
            await story.client.subscribe(T, f"more{number}")
        await facade.topic_stats(NAME, StatsOptions())
        gc.collect()
        tracemalloc.start()
        try:
            stats = await facade.topic_stats(NAME, StatsOptions())
            held_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(stats.subscriptions) == 101
        return held_bytes, facade.answer_bytes(NAME)

    facade = story.facade
    held_bytes, estimated_bytes = story.world.run(play())
    assert held_bytes <= estimated_bytes < 4 * held_bytes


def test_properties_of_a_subscription(story: Story) -> None:
    facade, run = story.facade, story.world.run
    run(facade.set_subscription_properties(NAME, "s", {"owner": "team"}))
    assert facade.subscription_properties(NAME, "s") == {"owner": "team"}
    with pytest.raises(RefusalError) as refusal:
        run(facade.set_subscription_properties(NAME, "s", {"k": "v" * 70_000}))
    assert refusal.value.status == 412
    with pytest.raises(RefusalError, match="not found") as refusal:
        facade.subscription_properties(NAME, "other")
    assert refusal.value.status == 404
