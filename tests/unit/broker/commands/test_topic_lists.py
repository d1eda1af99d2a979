"""Lists of topics and watchers, over the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.base.units import MIB
from headgate.base.work_units import PATTERN_COMPILED
from headgate.broker.commands.topic_lists import SLICE_NAMES
from headgate.broker.connection.bounds import WATCHERS_MAX
from headgate.broker.connection.connection import Connection
from headgate.metadata.rows import TenantRow
from headgate.testing import RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError, TopicListMode
from headgate.wire.messages import (
    CommandGetTopicsOfNamespaceResponse,
    CommandWatchTopicListSuccess,
)
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.unread import unsent_after
from tests.unit.denying import Deny

BASE = "persistent://public/default"


async def listed(
    client: SimClient, pattern: str, topics_hash: str | None = None
) -> CommandGetTopicsOfNamespaceResponse:
    answer = await client.request(
        lambda i: frames.get_topics_of_namespace(
            i, "public/default", pattern=pattern, topics_hash=topics_hash
        )
    )
    return answer.getTopicsOfNamespaceResponse


async def watched(
    client: SimClient, watcher: int, pattern: str, topics_hash: str | None = None
) -> CommandWatchTopicListSuccess:
    answer = await client.request(
        lambda i: frames.watch_topic_list(
            i, watcher, "public/default", pattern, topics_hash=topics_hash
        )
    )
    return answer.watchTopicListSuccess


def create(world: World, *names: str) -> None:
    """Create topics, as a change that is durable at once."""
    catalog = world.broker.catalog
    for name in names:
        change = catalog.plan_create_topic(parse_topic(f"{BASE}/{name}"), now_ms=1)
        catalog.apply(change)


@played()
async def test_a_namespace_that_is_not_there_yet_has_no_topics(world: World) -> None:
    """Whoever subscribes by a pattern may come before it."""
    client = await world.connect()
    assert await client.topics("acme/later") == []
    catalog, tenant = world.broker.catalog, TenantRow(allowed_clusters=("standalone",))
    for change in (
        lambda: catalog.plan_create_tenant("acme", tenant),
        lambda: catalog.plan_create_namespace(NamespaceName("acme", "later")),
    ):
        await world.broker.writer.commit(change())
    name = "persistent://acme/later/orders"
    await client.producer(name)
    assert await client.topics("acme/later") == [name]


@played()
async def test_a_long_list_of_topics_is_made_in_slices(
    world: World,
) -> None:
    """It was one call: a namespace of 100,000 topics stopped everybody for 0.1 s and more."""
    catalog, count = world.broker.catalog, 3 * SLICE_NAMES + 5
    names = [f"persistent://public/default/t{number:06}" for number in range(count)]
    for name in names:
        change = catalog.plan_create_topic(parse_topic(name), now_ms=1)
        catalog.apply(change)
    client = await world.connect()
    turn, asked = 0, []
    topics_after, begin_turn = catalog.topics_after, world.broker.begin_turn

    def begun() -> None:
        nonlocal turn
        turn += 1
        begin_turn()

    def noting(namespace: NamespaceName, after: str, count_max: int) -> list[str]:
        asked.append(turn)
        found = topics_after(namespace, after, count_max)
        assert len(found) <= SLICE_NAMES
        return found

    catalog.topics_after = noting  # type: ignore[method-assign]
    world.broker.begin_turn = begun  # type: ignore[method-assign]
    assert await client.topics("public/default") == names
    assert len(asked) == len(set(asked)) == 4


@played()
async def test_a_right_that_ends_while_a_list_is_made_counts_no_more(world: World) -> None:
    broker, catalog = world.broker, world.broker.catalog
    create(world, *(f"t{number:06}" for number in range(SLICE_NAMES + 5)))
    client = await world.connect()
    allows, topics_after = broker.authorizer, catalog.topics_after

    def ending(namespace: NamespaceName, after: str, count_max: int) -> list[str]:
        if after:
            broker.authorizer = Deny()
        return topics_after(namespace, after, count_max)

    catalog.topics_after = ending  # type: ignore[method-assign]
    with pytest.raises(RefusedError, match="not authorized to GetTopicsOfNamespace") as refusal:
        await client.topics("public/default")
    assert refusal.value.code == ServerError.AUTHORIZATION_ERROR
    broker.authorizer = allows


@played()
async def test_a_list_of_topics_beyond_the_bound_is_refused(
    world: World,
) -> None:
    catalog = world.broker.catalog
    for number in range(20):
        name = f"persistent://public/default/t{number}"
        catalog.apply(catalog.plan_create_topic(parse_topic(name), now_ms=1))
    client = await world.connect()
    settings = world.broker.settings
    before = settings.maxMessageSize
    settings.maxMessageSize = 100
    try:
        with pytest.raises(RefusedError, match="more than 100 bytes") as refusal:
            await client.topics("public/default")
    finally:
        settings.maxMessageSize = before
    assert refusal.value.code == ServerError.TOO_MANY_REQUESTS
    assert len(await client.topics("public/default")) == 20


@played()
async def test_a_list_with_a_pattern_has_what_matches_and_its_hash(world: World) -> None:
    create(world, "ab-partition-0", "ab-partition-1", "ac", "b")
    client = await world.connect()
    found = await listed(client, "public/default/a.")
    assert [name.rpartition("/")[2] for name in found.topics] == [
        "ab-partition-0", "ab-partition-1", "ac",
    ]  # fmt: skip
    assert (found.filtered, found.changed) == (True, True)
    same = await listed(client, f"{BASE}/a.", found.topics_hash)
    assert (list(same.topics), same.changed) == ([], False)
    assert same.topics_hash == found.topics_hash


@pytest.mark.parametrize("pattern", ["public/default/(?=a).*", "x" * 51, "("])
def test_a_pattern_that_the_broker_does_not_evaluate_is_the_clients_task(pattern: str) -> None:
    @played()
    async def story(world: World) -> None:
        create(world, "a", "b")
        client = await world.connect()
        found = await listed(client, pattern)
        assert len(found.topics) == 2
        assert not found.filtered
        with pytest.raises(RefusedError, match="Unable to create topic list watcher") as refusal:
            await watched(client, 1, pattern)
        assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR
        assert world.broker.topic_watchers.views_count == 0

    story()


@played(settings={"enableBrokerSideSubscriptionPatternEvaluation": "false"})
async def test_without_evaluation_nothing_is_announced_and_nothing_watched(world: World) -> None:
    client = await world.connect()
    assert client.connected is not None
    assert not client.connected.connected.feature_flags.supports_topic_watchers
    with pytest.raises(RefusedError, match="Evaluating subscription patterns is disabled"):
        await watched(client, 1, ".*")


@played()
async def test_flags_name_what_is_there(world: World) -> None:
    client = await world.connect()
    assert client.connected is not None
    flags = client.connected.connected.feature_flags
    assert {field.name for field, value in flags.ListFields() if value} == {
        "supports_topic_watchers", "supports_get_partitioned_metadata_without_auto_creation",
    }  # fmt: skip


@played()
async def test_there_are_no_other_domains(world: World) -> None:
    create(world, "a")
    client = await world.connect()
    answer = await client.request(
        lambda i: frames.get_topics_of_namespace(
            i, "public/default", TopicListMode.NON_PERSISTENT, pattern=".*"
        )
    )
    assert not answer.getTopicsOfNamespaceResponse.topics


@played()
async def test_a_watcher_learns_what_comes_and_goes(world: World) -> None:
    client = await world.connect()
    await client.producer(f"{BASE}/a1")
    opened = await watched(client, 7, f"{BASE}/a.*")
    assert list(opened.topic) == [f"{BASE}/a1"]
    for name in ("a2", "b"):
        await client.producer(f"{BASE}/{name}")
    await asyncio.sleep(1)
    (update,) = client.unexpected
    assert update.type == CommandType.WATCH_TOPIC_UPDATE
    assert list(update.watchTopicUpdate.new_topics) == [f"{BASE}/a2"]
    assert update.watchTopicUpdate.topics_hash == (await listed(client, f"{BASE}/a.*")).topics_hash
    client.unexpected.clear()
    await world.broker.registry.delete(parse_topic(f"{BASE}/a1"), force=True)
    await asyncio.sleep(1)
    (update,) = client.unexpected
    assert list(update.watchTopicUpdate.deleted_topics) == [f"{BASE}/a1"]
    again = await watched(client, 8, f"{BASE}/a.*", update.watchTopicUpdate.topics_hash)
    assert not again.topic


@played()
async def test_a_watcher_is_closed_once_and_learns_nothing_more(world: World) -> None:
    client = await world.connect()
    await watched(client, 7, ".*")
    with pytest.raises(RefusedError, match="already present") as refusal:
        await watched(client, 7, ".*")
    assert refusal.value.code == ServerError.SERVICE_NOT_READY
    for _ in range(2):
        await client.request(lambda i: frames.watch_topic_list_close(i, 7))
    assert world.broker.topic_watchers.views_count == 0
    await client.producer(TOPIC)
    await asyncio.sleep(1)
    assert not client.unexpected


@played()
async def test_watchers_end_with_their_connection(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    for watcher in range(3):
        await watched(client, watcher, ".*")
    await watched(other, 1, "x.*")
    assert world.broker.topic_watchers.views_count == 2
    client.abort()
    await asyncio.sleep(1)
    assert world.broker.topic_watchers.views_count == 1


@played()
async def test_invalid_namespaces_are_refused(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError) as refusal:
        await client.request(lambda i: frames.watch_topic_list(i, 1, "nowhere", ".*"))
    assert refusal.value.code == ServerError.INVALID_TOPIC_NAME


@played()
async def test_a_list_that_one_command_cannot_hold_is_refused_to_a_watcher(world: World) -> None:
    create(world, *(f"t{number}" for number in range(20)))
    client = await world.connect()
    settings = world.broker.settings
    before, settings.maxMessageSize = settings.maxMessageSize, 100
    try:
        with pytest.raises(RefusedError, match="more than 100 bytes"):
            await watched(client, 1, ".*")
    finally:
        settings.maxMessageSize = before
    assert world.broker.topic_watchers.views_count == 0
    assert len((await watched(client, 1, ".*")).topic) == 20


@played()
async def test_a_connection_has_so_many_watchers(world: World) -> None:
    client = await world.connect()
    for watcher in range(WATCHERS_MAX):
        await watched(client, watcher, ".*")
    with pytest.raises(RefusedError, match="no more are allowed") as refusal:
        await watched(client, WATCHERS_MAX, ".*")
    assert refusal.value.code == ServerError.NOT_ALLOWED_ERROR
    client.abort()
    await asyncio.sleep(1)
    assert world.broker.topic_watchers.views_count == 0


@played()
async def test_a_pattern_that_is_refused_counts_as_the_work_that_it_is(world: World) -> None:
    """RE2 works on each of these for a millisecond: 170 of them were carried out at once."""
    client, units = await world.connect(), list[list[int]]()
    too_large = "(?i)[\\pL\\pN]{30}(?i)[\\pL\\pN]{30}"

    def noted(_: Connection, steps: Iterator[int]) -> None:
        units.append(list(steps))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "run_in_slices", noted)
        with pytest.raises(RefusedError, match="pattern too large"):
            await watched(client, 1, too_large)
        for pattern in (too_large, ".*"):
            answer = await client.request(
                partial(
                    frames.get_topics_of_namespace,
                    namespace="public/default",
                    pattern=pattern,
                    mode=TopicListMode.NON_PERSISTENT,
                )
            )
            assert answer.getTopicsOfNamespaceResponse.filtered is (pattern != too_large)
    assert units == [[PATTERN_COMPILED]] * 3


@played()
async def test_a_new_pattern_counts_as_the_work_that_it_is(world: World) -> None:
    """Patterns that are allowed cost RE2 as much: 32 of them were carried out in one turn."""
    client, units = await world.connect(), list[list[int]]()

    def noted(_: Connection, steps: Iterator[int]) -> None:
        units.append(list(steps))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "run_in_slices", noted)
        for watcher_id in (1, 2):  # the second one shares the program of the first
            await watched(client, watcher_id, "(?i)\\p{Lu}")
    assert units == [[PATTERN_COMPILED]]


@played()
async def test_lists_of_topics_do_not_pass_the_bound(world: World) -> None:
    """90 KB of such commands took 2.7 GB where clients may hold 256 MB."""
    create(world, *(f"{'t' * 500}{number}" for number in range(200)))
    namespace = "public/default"
    found = await unsent_after(world, lambda i: frames.get_topics_of_namespace(i, namespace))
    assert MIB // 2 < found < 3 * MIB
