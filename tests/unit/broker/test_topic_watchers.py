"""Watchers of topics: shared views, peers that do not read, changed permissions, many changes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any
from unittest import mock

from headgate.base.identity import NOBODY
from headgate.base.names import NamespaceName, parse_topic
from headgate.base.text_memory import text_bytes
from headgate.base.work_units import JOB_STEP_UNITS_MAX
from headgate.broker.held_memory import OBJECT_BYTES
from headgate.broker.name_differences import PART_BYTES_MAX
from headgate.broker.namespace_changes import CHANGES_MAX, TopicChange
from headgate.broker.topic_pattern import TopicsHash
from headgate.broker.topic_watchers import VIEWS_AT_ONCE, VIEWS_REST_S_MAX
from headgate.broker.watched_names import (
    NAME_BYTES,
    PATTERN_BYTES,
    TopicWatcher,
    WatchedNamespace,
)
from headgate.metadata.catalog import Change
from headgate.metadata.rows import TenantRow
from headgate.testing import World
from headgate.wire.codes import CommandType
from headgate.wire.frame import FrameDecoder
from headgate.wire.messages import BaseCommand, CommandWatchTopicUpdate
from tests.unit.broker.memory_rig import set_bound
from tests.unit.broker.playing import played
from tests.unit.denying import Deny

BASE = "persistent://public/default"
NAMESPACE = NamespaceName("public", "default")


class Peer:
    """A connection that keeps what is written to it, and may stop reading."""

    def __init__(self) -> None:
        self.watchers: dict[int, TopicWatcher] = {}
        self.described_bytes: dict[tuple[str, int], int] = {}
        self.identity = NOBODY
        self.peer_blocked = False
        self.written: list[BaseCommand] = []
        self.refusals: list[str] = []

    def write(self, frame: bytes) -> None:
        decoder = FrameDecoder()
        decoder.feed(frame)
        found = decoder.next_frame()
        assert found is not None
        self.written.append(found[0])

    def refuse(self, _: BaseCommand, error: Exception) -> bool:
        self.refusals.append(str(error))
        return True

    def updates(self) -> list[CommandWatchTopicUpdate]:
        kind = CommandType.WATCH_TOPIC_UPDATE
        return [each.watchTopicUpdate for each in self.written if each.type == kind]


def at_rest(story: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
    """A story that begins when nothing that the start wrote is under way any more: it applies its
    own changes by hand."""

    @functools.wraps(story)
    async def rested(world: World) -> None:
        await asyncio.sleep(0.1)
        await story(world)

    return played()(rested)


def watch(
    world: World, peer: Peer, watcher_id: int, pattern: str, namespace: NamespaceName = NAMESPACE
) -> TopicWatcher:
    command = BaseCommand(type=CommandType.WATCH_TOPIC_LIST)
    request = command.watchTopicList
    request.request_id, request.watcher_id = 1, watcher_id
    request.namespace, request.topics_pattern = str(namespace), pattern
    connection: Any = peer
    watcher = world.broker.topic_watchers.open(connection, command, namespace, pattern)
    peer.watchers[watcher_id] = watcher
    return watcher


def changed(world: World, change: Change) -> None:
    """A change is durable and takes effect."""
    world.broker.catalog.apply(change)
    world.broker.topic_watchers.applied(change)


def create(world: World, name: str) -> None:
    changed(world, world.broker.catalog.plan_create_topic(parse_topic(name), now_ms=1))


def delete(world: World, name: str) -> None:
    changed(world, world.broker.catalog.plan_delete_topic(parse_topic(name), keeps_grants=False))


def hash_of(*names: str) -> str:
    found = TopicsHash()
    found.add(sorted(names))
    return found.text


@at_rest
async def test_watchers_of_one_pattern_share_a_view(world: World) -> None:
    peers = [Peer() for _ in range(3)]
    for peer in peers:
        watch(world, peer, 1, ".*/a.*")
    watch(world, peers[0], 2, ".*/b.*")
    assert world.broker.topic_watchers.views_count == 2
    await asyncio.sleep(1)
    create(world, f"{BASE}/a")
    await asyncio.sleep(1)
    assert [len(peer.updates()) for peer in peers] == [1, 1, 1]
    for peer in peers:
        for watcher in peer.watchers.values():
            watcher.end()
            watcher.end()
    assert world.broker.topic_watchers.views_count == 0


@at_rest
async def test_what_happens_while_a_view_is_built_is_in_its_answer(world: World) -> None:
    for number in range(500):
        create(world, f"{BASE}/t{number:03}")
    peer = Peer()
    watch(world, peer, 1, ".*/t.*")
    await asyncio.sleep(0)
    create(world, f"{BASE}/t000a")
    delete(world, f"{BASE}/t400")
    await asyncio.sleep(5)
    (answer,) = peer.written
    names = list(answer.watchTopicListSuccess.topic)
    assert len(names) == 500
    assert f"{BASE}/t000a" in names
    assert f"{BASE}/t400" not in names
    assert answer.watchTopicListSuccess.topics_hash == hash_of(*names)


@at_rest
async def test_a_topic_that_goes_and_returns_is_in_both_lists(world: World) -> None:
    create(world, f"{BASE}/a")
    peer = Peer()
    watch(world, peer, 1, ".*")
    await asyncio.sleep(1)
    delete(world, f"{BASE}/a")
    create(world, f"{BASE}/a")
    create(world, f"{BASE}/b")
    delete(world, f"{BASE}/b")
    await asyncio.sleep(1)
    (update,) = peer.updates()
    assert (list(update.deleted_topics), list(update.new_topics)) == ([f"{BASE}/a"], [f"{BASE}/a"])
    assert update.topics_hash == hash_of(f"{BASE}/a")


@at_rest
async def test_a_peer_that_does_not_read_gets_later_what_it_missed(world: World) -> None:
    create(world, f"{BASE}/a")
    peer, reading = Peer(), Peer()
    for each in (peer, reading):
        watch(world, each, 1, ".*")
    await asyncio.sleep(1)
    peer.peer_blocked = True
    for name in "bcd":
        create(world, f"{BASE}/{name}")
        await asyncio.sleep(1)
    delete(world, f"{BASE}/a")
    delete(world, f"{BASE}/c")
    await asyncio.sleep(3)
    assert not peer.updates()
    assert len(reading.updates()) == 4
    held = peer.described_bytes["watcher", 1]
    peer.peer_blocked = False
    await asyncio.sleep(2)
    (update,) = peer.updates()
    assert list(update.deleted_topics) == [f"{BASE}/a"]
    assert list(update.new_topics) == [f"{BASE}/b", f"{BASE}/d"]
    assert update.topics_hash == hash_of(f"{BASE}/b", f"{BASE}/d")
    assert peer.described_bytes["watcher", 1] < held


@at_rest
async def test_a_peer_that_does_not_read_waits_for_its_answer(world: World) -> None:
    peer, gone = Peer(), Peer()
    peer.peer_blocked = gone.peer_blocked = True
    watch(world, peer, 1, ".*")
    watch(world, gone, 1, ".*").end()
    await asyncio.sleep(3)
    assert not peer.written
    peer.peer_blocked = False
    await asyncio.sleep(2)
    assert len(peer.written) == 1
    assert not gone.written


@at_rest
async def test_a_tenant_with_many_namespaces_keeps_no_other_one_waiting(world: World) -> None:
    """Namespaces took turns, of which a tenant may have 20: with costly patterns in 19 of them
    somebody else's watcher had its answer after 0.8 s."""
    order: list[str] = []

    class Ordered(Peer):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def write(self, frame: bytes) -> None:
            super().write(frame)
            order.append(self.name)

    many = [NamespaceName("evil", f"n{number}") for number in range(20)]
    few = [NamespaceName("globex", "ns"), NamespaceName("acme", "ns")]
    catalog = world.broker.catalog
    for tenant in ("evil", "globex", "acme"):
        row = TenantRow(admin_roles=(), allowed_clusters=("standalone",))
        changed(world, catalog.plan_create_tenant(tenant, row))
    for name in (*many, *few):
        changed(world, catalog.plan_create_namespace(name))
        watch(world, Ordered(str(name)), 1, ".*", name)
    await asyncio.sleep(1)
    assert {order.index(str(name)) for name in few} == {1, 2}
    order.clear()
    for name in (*many, *few):
        create(world, f"persistent://{name}/new")
    await asyncio.sleep(30)
    assert {order.index(str(name)) for name in few} == {1, 2}


@at_rest
async def test_peers_that_do_not_read_cost_those_that_ask_nothing(world: World) -> None:
    """Each answer went through all that waited so, without a pause: 60 ms for 30,000, which are 6
    MB of commands; for as long as somebody asked again and again."""
    looks = 0

    class Blocked(Peer):
        @property
        def peer_blocked(self) -> bool:
            nonlocal looks
            looks += 1
            return True

        @peer_blocked.setter
        def peer_blocked(self, _: bool) -> None: ...

    blocked, peer = Blocked(), Peer()
    for number in range(200):
        watch(world, blocked, number, ".*")
    await asyncio.sleep(0.01)
    before = looks
    assert before >= 200
    for number in range(20):
        watch(world, peer, number, ".*").end()
        watch(world, peer, number, ".*")
        await asyncio.sleep(0.01)
    assert (len(peer.written), looks) == (20, before)
    for number in range(100):
        blocked.watchers[number].end()
    await asyncio.sleep(3)
    assert before + 100 <= looks <= before + 400
    assert not blocked.written


@at_rest
async def test_very_many_namespaces_that_do_not_exist_are_not_gone_through_for_each(
    world: World,
) -> None:
    """An administrator of a tenant may watch any number of them. Each turn looked for a namespace
    of another tenant among all that waited, without a pause: 0.14 s in one iteration of the loop
    with 7,000 of them whose peers did not read, all the time."""
    looks = 0

    class Counted(WatchedNamespace):
        _name = NAMESPACE

        @property
        def name(self) -> NamespaceName:  # type: ignore[override]
            nonlocal looks
            looks += 1
            return self._name

        @name.setter
        def name(self, name: NamespaceName) -> None:
            self._name = name

    reading, blocked = Peer(), Peer()
    blocked.peer_blocked = True
    with mock.patch("headgate.broker.topic_watchers.WatchedNamespace", Counted):
        for number in range(500):
            for peer, name in ((reading, f"a{number}"), (blocked, f"b{number}")):
                watch(world, peer, number, "x", NamespaceName("public", name))
        await asyncio.sleep(3.5)
    assert len(reading.written) == 500
    assert not blocked.written
    assert 1_000 < looks < 40_000


@at_rest
async def test_what_changes_while_a_namespace_is_worked_on_waits_for_its_rest(
    world: World,
) -> None:
    peer = Peer()
    for number in range(3 * VIEWS_AT_ONCE):
        watch(world, peer, number, f".*/(a.*|{number})")
    await asyncio.sleep(5)
    create(world, f"{BASE}/a0")
    while not peer.updates():
        await asyncio.sleep(0)
    create(world, f"{BASE}/a1")
    watched = peer.watchers[0].view.watched
    while watched.rests_until_s <= world.loop.time():
        await asyncio.sleep(0)
    told, rests_until_s = len(peer.updates()), watched.rests_until_s
    while len(peer.updates()) == told:
        await asyncio.sleep(0.001)
    assert world.loop.time() >= rests_until_s
    await asyncio.sleep(5)
    names = [name for update in peer.updates() for name in update.new_topics]
    assert len(names) == 6 * VIEWS_AT_ONCE


@at_rest
async def test_many_changes_for_many_peers_that_do_not_read_are_remembered_in_steps(
    world: World,
) -> None:
    """Each of them counted as one unit, whatever the number of changes: the deletion of a topic
    with 990 partitions was 55 ms in one iteration of the loop."""
    peer = Peer()
    watchers = [watch(world, peer, number, ".*") for number in range(300)]
    await asyncio.sleep(1)
    name, catalog = parse_topic(f"{BASE}/t"), world.broker.catalog
    changed(world, catalog.plan_create_partitioned(name, 990, now_ms=1))
    await asyncio.sleep(5 + VIEWS_REST_S_MAX)
    peer.peer_blocked = True
    changed(world, catalog.plan_delete_topic(name, keeps_grants=False))
    counts = [0]
    for _ in range(1_000):
        await asyncio.sleep(0)
        counts.append(sum(bool(each.deleted) for each in watchers))
    assert counts[-1] == 300
    assert max(after - before for before, after in pairwise(counts)) <= 16


@at_rest
async def test_of_the_command_of_one_that_waits_little_is_kept(world: World) -> None:
    """Nobody is charged with what a client puts into it: a thousand with 256 KiB each waited on a
    connection that is not read."""
    create(world, f"{BASE}/a")
    peer = Peer()
    peer.peer_blocked = True
    for watcher_id, topics_hash in enumerate(("x" * 60_000, hash_of(f"{BASE}/a"))):
        command = BaseCommand(type=CommandType.WATCH_TOPIC_LIST)
        request = command.watchTopicList
        request.request_id, request.watcher_id = 7 + watcher_id, watcher_id
        request.namespace, request.topics_pattern = str(NAMESPACE), ".*"
        request.topics_hash = topics_hash
        connection: Any = peer
        watcher = world.broker.topic_watchers.open(connection, command, NAMESPACE, ".*")
    await asyncio.sleep(3)
    kept = [*watcher.view.opening.values(), *watcher.view.blocked.values()]
    assert len(kept) == 2
    assert all(each.ByteSize() < 100 for each in kept)
    peer.peer_blocked = False
    await asyncio.sleep(3)
    answers = [each.watchTopicListSuccess for each in peer.written]
    assert [answer.request_id for answer in answers] == [7, 8]
    assert [list(answer.topic) for answer in answers] == [[f"{BASE}/a"], []]


@at_rest
async def test_long_lists_wait_while_clients_hold_too_much(world: World) -> None:
    memory = world.broker.client_memory
    for number in range(40):
        create(world, f"{BASE}/{'t' * 500}{number}")
    create(world, f"{BASE}/a")
    peer, bytes_max = Peer(), memory.bytes_max
    set_bound(memory, 1)
    for watcher_id, pattern in enumerate((".*", ".*/a")):
        watch(world, peer, watcher_id, pattern)
    await asyncio.sleep(5)
    (answer,) = peer.written
    assert list(answer.watchTopicListSuccess.topic) == [f"{BASE}/a"]
    set_bound(memory, bytes_max)
    await asyncio.sleep(5)
    assert len(peer.written[1].watchTopicListSuccess.topic) == 41


@at_rest
async def test_changes_wait_while_clients_hold_too_much(world: World) -> None:
    """2 MB of names were written to each of 1,000 watchers."""
    memory, peers = world.broker.client_memory, [Peer() for _ in range(3)]
    for peer in peers:
        watch(world, peer, 1, ".*")
    await asyncio.sleep(1)
    bytes_max = memory.bytes_max
    set_bound(memory, 1)
    for number in range(3):
        create(world, f"{BASE}/{number}")
        await asyncio.sleep(5)
    assert not any(peer.updates() for peer in peers)
    set_bound(memory, bytes_max)
    await asyncio.sleep(5)
    for peer in peers:
        (update,) = peer.updates()
        assert len(update.new_topics) == 3


@at_rest
async def test_a_client_that_may_no_longer_list_topics_learns_no_more(world: World) -> None:
    peer = Peer()
    watch(world, peer, 1, ".*")
    await asyncio.sleep(1)
    world.broker.authorizer = Deny()
    create(world, f"{BASE}/a")
    await asyncio.sleep(1)
    assert not peer.updates()
    assert not peer.watchers
    assert world.broker.topic_watchers.views_count == 0


@at_rest
async def test_a_client_that_lost_the_right_while_its_answer_waited_is_refused(
    world: World,
) -> None:
    """Otherwise a peer that reads nothing could keep an answer for later."""
    peer = Peer()
    peer.peer_blocked = True
    watch(world, peer, 1, ".*")
    await asyncio.sleep(1)
    world.broker.authorizer = Deny()
    create(world, f"{BASE}/a")
    peer.peer_blocked = False
    await asyncio.sleep(2)
    assert not peer.written
    (refusal,) = peer.refusals
    assert refusal.startswith("Client is not authorized to WatchTopicList")
    assert not peer.watchers
    assert world.broker.topic_watchers.views_count == 0


@at_rest
async def test_changes_of_one_moment_go_together_and_long_ones_in_parts(world: World) -> None:
    peer = Peer()
    watch(world, peer, 1, ".*")
    await asyncio.sleep(1)
    for number in range(100):
        create(world, f"{BASE}/t{number}")
    await asyncio.sleep(1)
    assert len(peer.updates()) == 1
    catalog, name = world.broker.catalog, parse_topic(f"{BASE}/{'n' * 400}")
    await world.broker.writer.commit(catalog.plan_create_partitioned(name, 1_000, now_ms=1))
    await asyncio.sleep(10)
    updates = peer.updates()[1:]
    assert len(updates) == 1_000 * 450 // PART_BYTES_MAX + 1
    assert sum(len(update.new_topics) for update in updates) == 1_000
    assert updates[-1].topics_hash == hash_of(*catalog.topics(NAMESPACE))


@at_rest
async def test_a_view_rests_ten_times_as_long_as_it_worked(world: World) -> None:
    for number in range(4_000):
        create(world, f"{BASE}/old{number}")
    peer = Peer()
    watch(world, peer, 1, ".*")
    await asyncio.sleep(1)
    catalog, writer = world.broker.catalog, world.broker.writer
    for number in range(200):
        plan = catalog.plan_create_topic(parse_topic(f"{BASE}/new{number}"), now_ms=1)
        await writer.commit(plan)
    await asyncio.sleep(1)
    assert 2 <= len(peer.updates()) < 200
    assert sum(len(update.new_topics) for update in peer.updates()) == 200


@at_rest
async def test_the_brokers_own_topics_and_policies_are_no_changes(world: World) -> None:
    peer = Peer()
    watch(world, peer, 1, ".*")
    await asyncio.sleep(1)
    catalog = world.broker.catalog
    system = parse_topic(world.broker.settings.headgateTelemetryTopic)
    if catalog.topic(system.full) is None:
        create(world, system.full)
    changed(world, catalog.plan_create_partitioned(parse_topic(f"{BASE}/p"), 2, now_ms=1))
    await asyncio.sleep(1)
    (update,) = peer.updates()
    assert list(update.new_topics) == [f"{BASE}/p-partition-0", f"{BASE}/p-partition-1"]


@at_rest
async def test_a_watcher_that_cannot_be_answered_does_not_keep_a_view_from_resting(
    world: World,
) -> None:
    for number in range(4_000):
        create(world, f"{BASE}/old{number}")
    peer, blocked = Peer(), Peer()
    blocked.peer_blocked = True
    watch(world, peer, 1, ".*")
    watch(world, blocked, 1, ".*")
    await asyncio.sleep(1)
    catalog, writer = world.broker.catalog, world.broker.writer
    for number in range(100):
        plan = catalog.plan_create_topic(parse_topic(f"{BASE}/new{number}"), now_ms=1)
        await writer.commit(plan)
    await asyncio.sleep(1)
    assert 2 <= len(peer.updates()) < 100
    assert not blocked.written


@at_rest
async def test_many_changes_of_long_names_are_matched_in_steps(world: World) -> None:
    peer = Peer()
    watcher = watch(world, peer, 1, "(.*a.{29}){4}")
    await asyncio.sleep(1)
    assert watcher.view.pattern.names_per_step < 10
    name = f"{BASE}/{'ab' * 240}-partition-"
    changes = [TopicChange(f"{name}{number}", True) for number in range(500)]
    steps = list(watcher.view.apply(changes))
    assert len(steps) > 200
    assert max(steps) <= 2 * JOB_STEP_UNITS_MAX
    assert len(watcher.view.names) == 500


@at_rest
async def test_watchers_count_to_the_memory_of_clients(world: World) -> None:
    for number in range(1_000):
        create(world, f"{BASE}/t{number}")
    peer = Peer()
    watch(world, peer, 1, ".*")
    await asyncio.sleep(1)
    names_bytes = 1_000 * NAME_BYTES
    assert peer.described_bytes["watcher", 1] == OBJECT_BYTES + names_bytes + PATTERN_BYTES
    other = Peer()
    watch(world, other, 1, ".*")
    watch(world, other, 2, ".*/t1.*")
    await asyncio.sleep(1)
    assert other.described_bytes["watcher", 1] == OBJECT_BYTES + names_bytes
    assert other.described_bytes["watcher", 2] > PATTERN_BYTES
    peer.watchers[1].end()
    assert other.described_bytes["watcher", 1] == OBJECT_BYTES + names_bytes + PATTERN_BYTES


@at_rest
async def test_names_of_topics_that_are_gone_count_with_a_watcher_that_is_not_told(
    world: World,
) -> None:
    names = [f"{BASE}/{chr(0x1F600) * 500}{number}" for number in range(10)]
    for name in names:
        create(world, name)
    peer = Peer()
    watch(world, peer, 1, ".*")
    await asyncio.sleep(1)
    before = peer.described_bytes["watcher", 1]
    peer.peer_blocked = True
    for _ in range(3):
        for name in names:
            delete(world, name)
        await asyncio.sleep(5)
        held_bytes = peer.described_bytes["watcher", 1]
        assert 10 * text_bytes(names[0]) < held_bytes - before < 11 * text_bytes(names[0])
        for name in names:
            create(world, name)
        await asyncio.sleep(5)
    peer.peer_blocked = False
    await asyncio.sleep(5)
    assert peer.described_bytes["watcher", 1] == before


@at_rest
async def test_watchers_that_end_before_their_answer_leave_nothing(world: World) -> None:
    """A client that opens and closes all the time made the broker keep each of its commands."""
    peer = Peer()
    kept = watch(world, peer, 0, ".*")
    for number in range(1, 100):
        watch(world, peer, number, ".*").end()
    assert len(kept.view.opening) == 1
    kept.end()
    assert (len(kept.view.opening), kept.view.owner) == (0, None)
    assert world.broker.topic_watchers.views_count == 0


@at_rest
async def test_an_owner_that_ends_before_its_answer_passes_the_pattern_on(world: World) -> None:
    first, second = Peer(), Peer()
    owner = watch(world, first, 1, ".*")
    other = watch(world, second, 1, ".*")
    assert owner.view.owner is owner
    owner.end()
    assert other.view.owner is other
    await asyncio.sleep(1)
    assert second.described_bytes["watcher", 1] >= PATTERN_BYTES


@at_rest
async def test_a_change_is_kept_once_for_all_patterns_and_their_number_has_a_bound(
    world: World,
) -> None:
    """Each pattern kept each change: memory without a bound, which nobody was charged with."""
    create(world, f"{BASE}/a")
    peer = Peer()
    watchers = [watch(world, peer, number, f".*/.{{1,{number}}}") for number in range(1, 9)]
    await asyncio.sleep(1)
    changes = watchers[0].view.watched.changes
    assert all(watcher.view.watched.changes is changes for watcher in watchers)
    for name in "bcd":
        create(world, f"{BASE}/{name}")
    assert len(changes) == 3
    for _ in range(CHANGES_MAX):
        delete(world, f"{BASE}/d")
        create(world, f"{BASE}/d")
    assert len(changes) <= CHANGES_MAX
    await asyncio.sleep(5)
    assert len(changes) == 0
    names = [f"{BASE}/{name}" for name in "abcd"]
    assert all(watcher.view.names == names for watcher in watchers)
    assert {update.topics_hash for update in peer.updates()} == {hash_of(*names)}


@at_rest
async def test_a_view_that_missed_very_many_changes_tells_what_differs(world: World) -> None:
    for name in "ab":
        create(world, f"{BASE}/{name}")
    peer = Peer()
    watcher = watch(world, peer, 1, ".*")
    await asyncio.sleep(1)
    delete(world, f"{BASE}/a")
    create(world, f"{BASE}/c")
    for _ in range(CHANGES_MAX):
        delete(world, f"{BASE}/c")
        create(world, f"{BASE}/c")
    assert watcher.view.watched.changes.since(watcher.view.seen) is None
    await asyncio.sleep(1)
    (update,) = peer.updates()
    assert (list(update.deleted_topics), list(update.new_topics)) == ([f"{BASE}/a"], [f"{BASE}/c"])
    assert update.topics_hash == hash_of(f"{BASE}/b", f"{BASE}/c")
    create(world, f"{BASE}/d")
    await asyncio.sleep(1)
    assert list(peer.updates()[-1].new_topics) == [f"{BASE}/d"]


async def watched_twice(world: World, patterns_count: int) -> tuple[Peer, Peer]:
    """Who watches very many patterns in one namespace, and who watches all of another one."""
    namespace = NamespaceName("public", "other")
    changed(world, world.broker.catalog.plan_create_namespace(namespace))
    many, other = Peer(), Peer()
    for number in range(patterns_count):
        watch(world, many, number, f".*/(a|{number})")
    watch(world, other, 1, ".*", namespace)
    await asyncio.sleep(5)
    return many, other


@at_rest
async def test_a_namespace_with_many_patterns_keeps_no_other_one_waiting(world: World) -> None:
    many, other = await watched_twice(world, 10 * VIEWS_AT_ONCE)
    create(world, f"{BASE}/a")
    create(world, "persistent://public/other/b")
    while not other.updates():
        await asyncio.sleep(0)
    assert len(many.updates()) < 5 * VIEWS_AT_ONCE
    await asyncio.sleep(5)
    assert len(many.updates()) == 10 * VIEWS_AT_ONCE
    delete(world, f"{BASE}/a")
    await asyncio.sleep(5)
    assert len(many.updates()) == 20 * VIEWS_AT_ONCE


@at_rest
async def test_a_namespace_that_rests_for_long_keeps_no_other_one_resting(world: World) -> None:
    many, other = await watched_twice(world, 100 * VIEWS_AT_ONCE)
    create(world, "persistent://public/other/b")
    create(world, f"{BASE}/a")
    while len(many.updates()) < 100 * VIEWS_AT_ONCE:
        await asyncio.sleep(0)
    delete(world, f"{BASE}/a")  # waits for 0.3 s and more
    create(world, "persistent://public/other/c")
    await asyncio.sleep(0)
    create(world, "persistent://public/other/d")
    await asyncio.sleep(0.1)
    told = [name for update in other.updates() for name in update.new_topics]
    assert told == [f"persistent://public/other/{name}" for name in "bcd"]
    assert len(many.updates()) == 100 * VIEWS_AT_ONCE
    await asyncio.sleep(5)
    assert len(many.updates()) == 200 * VIEWS_AT_ONCE


@at_rest
async def test_those_that_ask_for_watchers_keep_no_other_namespace_waiting(world: World) -> None:
    namespace = NamespaceName("public", "other")
    changed(world, world.broker.catalog.plan_create_namespace(namespace))
    for number in range(400):
        create(world, f"{BASE}/old{number}")
    asking, other = Peer(), Peer()
    watch(world, other, 1, ".*", namespace)
    await asyncio.sleep(5)
    for number in range(100):
        watch(world, asking, number, f".*/{number}")
    create(world, "persistent://public/other/a")
    for number in range(100, 1_000):
        if other.updates():
            break
        asking.watchers.pop(number - 100).end()
        watch(world, asking, number, f".*/{number}")
        await asyncio.sleep(0)
    assert other.updates()
    newcomer = Peer()
    watch(world, newcomer, 1, "a", namespace)
    for _ in range(10):
        await asyncio.sleep(0)
    assert newcomer.written
    assert asking.watchers[max(asking.watchers)].view.opening


@at_rest
async def test_those_that_ask_for_watchers_change_no_rest(world: World) -> None:
    for number in range(1_000):
        create(world, f"{BASE}/old{number}")
    peer, asking = Peer(), Peer()
    watch(world, peer, 1, ".*")
    await asyncio.sleep(5)
    create(world, f"{BASE}/a")
    while not peer.updates():
        await asyncio.sleep(0)
    rests_until_s = peer.watchers[1].view.watched.rests_until_s
    assert rests_until_s > world.loop.time()
    watch(world, asking, 0, "none")
    while not asking.written:
        await asyncio.sleep(0)
    assert peer.watchers[1].view.watched.rests_until_s == rests_until_s
    delete(world, f"{BASE}/a")
    for number in range(1, 100):
        if len(peer.updates()) > 1:
            break
        watch(world, asking, number, f".*/old{number}.*")
        await asyncio.sleep(0.001)
        asking.watchers.pop(number).end()
    assert rests_until_s <= world.loop.time() < rests_until_s + 0.01


@at_rest
async def test_costly_patterns_of_one_client_let_a_namespace_rest_no_longer_than_a_bound(
    world: World,
) -> None:
    costly, peer = Peer(), Peer()
    for number in range(100):
        branches = "|".join(f"x{number}{letter}[a-z]{{1,9}}y" for letter in "abcdefghi")
        watch(world, costly, number, f".*/({branches})")
    watch(world, peer, 1, ".*/a")
    await asyncio.sleep(5)
    for number in range(400):
        create(world, f"{BASE}/{chr(0x1F600) * 500}{number}")
    await asyncio.sleep(1)
    create(world, f"{BASE}/a")
    assert not peer.updates()
    assert world.loop.time() < peer.watchers[1].view.watched.rests_until_s
    await asyncio.sleep(VIEWS_REST_S_MAX)
    assert peer.updates()
