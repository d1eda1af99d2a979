"""Group commit: what shares one, what a receipt may rest on, what failures do."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.base.names import NamespaceName
from headgate.base.units import MIB, NS_PER_S
from headgate.base.work_units import (
    COMMIT_UNITS,
    JOB_STEP_UNITS_MAX,
    LOOP_UNITS,
    PIECE_UNITS,
    RECEIPTS_PER_UNIT,
)
from headgate.broker.connection.producers import ConnectionProducers
from headgate.broker.work.scheduler import JobClass
from headgate.engine.publishing import TopicPublishing
from headgate.fs import Operation
from headgate.ledger import CommitLog, LedgerSettings
from headgate.metadata.rows import TenantRow
from headgate.storage import committer as committer_module
from headgate.storage.committer import ACK_DELAY_S, RETRY_DELAY_S, Committer, logger
from headgate.testing import NetworkProfile, RefusedError, World
from headgate.testing.producer import SimProducer
from headgate.wire.codes import ServerError
from tests.unit.broker.playing import TOPIC, played


def fail_on(kind: str, number: int = errno.EIO) -> Callable[[Operation], None]:
    """A plan of the disk: every operation of that kind fails."""

    def plan(operation: Operation) -> None:
        if operation.kind == kind:
            raise OSError(number, "as planned")

    return plan


@contextlib.contextmanager
def logged() -> Iterator[list[str]]:
    """What is logged of commits and the disk meanwhile."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    loggers = (logger, logging.getLogger("headgate.disk"))
    for each in loggers:
        each.addHandler(handler)
    try:
        yield lines
    finally:
        for each in loggers:
            each.removeHandler(handler)


def commits_count(world: World) -> int:
    return world.broker.committer.commits_count


@played()
async def test_what_comes_while_a_commit_runs_shares_the_next(world: World) -> None:
    clients = [await world.connect() for _ in range(5)]
    producers = [await client.producer(f"{TOPIC}-{index}") for index, client in enumerate(clients)]
    before = commits_count(world)
    world.lanes[0].freeze()
    first = producers[0].send_nowait(b"goes first")
    await asyncio.sleep(0.1)
    rest = [producer.send_nowait(b"x") for producer in producers for _ in range(20)]
    await asyncio.sleep(0.1)
    world.lanes[0].thaw()
    await first
    assert not any(future.done() for future in rest)
    await asyncio.gather(*rest)
    assert commits_count(world) == before + 2


@played()
async def test_the_time_that_the_log_takes_is_reported_from_the_time_before(world: World) -> None:
    client = await world.connect()
    first, second = [await client.producer(f"{TOPIC}-{index}") for index in (1, 2)]
    await asyncio.sleep(60 - world.clock.monotonic_ns() / NS_PER_S % 60)
    world.lanes[0].freeze()
    sent = [first.send_nowait(b"in the commit that hangs")]
    await asyncio.sleep(0.15)
    sent.append(second.send_nowait(b"waits for the next one"))
    await asyncio.sleep(0.35)
    world.lanes[0].thaw()
    await asyncio.gather(*sent)
    await asyncio.sleep(60)
    world.broker.begin_turn()
    topics = world.broker.engine.topics
    hung, waited = [topics[f"{TOPIC}-{index}"].publishing.writes_last_minute() for index in (1, 2)]
    assert 0.5 <= hung.storage_ns / NS_PER_S <= hung.latency_ns / NS_PER_S < 0.51
    assert waited.storage_ns / NS_PER_S < 0.01
    assert 0.35 <= waited.latency_ns / NS_PER_S < 0.37


@played()
async def test_acknowledgements_wait_for_company_but_not_for_long(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    for _ in range(10):
        await producer.send(b"x")
    messages = [await consumer.receive() for _ in range(10)]
    await asyncio.sleep(1)
    before = commits_count(world)
    for message in messages:
        consumer.ack_nowait(message.position)
    await asyncio.sleep(ACK_DELAY_S / 2)
    assert commits_count(world) == before
    await asyncio.sleep(ACK_DELAY_S)
    assert commits_count(world) == before + 1
    world.crash()
    await world.start()
    assert world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_entries == 0


@played()
async def test_durable_means_all_that_was_staged_before(world: World) -> None:
    committer = world.broker.committer
    await committer.when_durable()
    before = commits_count(world)
    await committer.when_durable()
    assert commits_count(world) == before
    producer = await (await world.connect()).producer(TOPIC)
    world.lanes[0].freeze()
    producer.send_nowait(b"in flight")
    await asyncio.sleep(0.1)
    durable = committer.when_durable()
    await asyncio.sleep(1)
    assert not durable.done()
    world.lanes[0].thaw()
    await durable
    assert world.broker.engine.topics[TOPIC].log.end == 1


@played()
async def test_a_failed_sync_is_final(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    world.disk.plan = fail_on("sync")
    with pytest.raises(RefusedError):
        await producer.send(b"x")
    world.disk.plan = lambda _: None
    for _ in range(2):
        with pytest.raises(StorageError, match="until a restart"):
            await world.broker.when_durable()
    with pytest.raises(RefusedError) as refusal:
        await (await client.producer(f"{TOPIC}-2")).send(b"x")
    assert refusal.value.code == ServerError.PERSISTENCE_ERROR
    assert commits_count(world) == world.broker.log.statistics().batches


@played()
async def test_a_disk_that_fails_under_maintenance_ends_storing_too(world: World) -> None:
    """Nothing may be called durable after the log has given up, whoever found out."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    position = await (await client.producer(TOPIC)).send(b"x")
    world.disk.plan = fail_on("sync")
    world.broker.log._staging.roll()
    while world.broker.log.failed is None:
        world.broker.logs.run_maintenance()
        await asyncio.sleep(0.01)
    with pytest.raises(StorageError):
        await world.broker.when_durable()
    with pytest.raises(RefusedError) as refusal:
        await consumer.ack(position)
    assert refusal.value.code == ServerError.PERSISTENCE_ERROR


@played(
    ledger=LedgerSettings(
        segment_bytes=64 * 1024, checkpoint_bytes=256 * 1024, ledger_age_ms_min=0
    ),
)
async def test_what_fails_again_and_again_is_not_tried_without_a_pause(world: World) -> None:
    """The disk is full, and so is the room that was kept for acknowledgements."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", properties={"x": "y" * 60_000})
    producer = await client.producer(TOPIC)
    await asyncio.sleep(5)
    world.disk.plan = fail_on("create", errno.ENOSPC)
    topic = world.broker.engine.topics[TOPIC]
    log, number = world.broker.log, topic.log.number
    made = [log.create_cursor(number, f"c{i}", AckSet(), {"x": "y" * 60_000}) for i in range(4)]
    before = world.lanes[0].jobs_count
    durable = world.broker.committer.when_durable()
    with pytest.raises(StorageError, match="the disk is full: not stored yet"):
        await durable
    await asyncio.sleep(10)
    assert world.lanes[0].jobs_count - before < 2 * 10 / RETRY_DELAY_S
    for cursor_id in made:
        log.delete_cursor(cursor_id)
    world.disk.plan = lambda _: None
    await asyncio.sleep(3)
    await world.broker.when_durable()
    await producer.send(b"room again")
    assert (await consumer.receive()).payload == b"room again"


@played(ledger=LedgerSettings(segment_bytes=8 * 1024))
async def test_a_disk_that_stays_full_is_two_lines_in_the_log(world: World) -> None:
    client = await world.connect()
    with logged() as lines:
        world.disk.plan = fail_on("write", errno.ENOSPC)
        waiting = []
        for index in range(200):
            producer = await client.producer(f"{TOPIC}-{index}")
            waiting.append(producer.send_nowait(b"x" * 1_000))
            await asyncio.sleep(0.5)
        (begun,) = lines
        assert begun.startswith("the disk is full: producers wait for room")
        assert begun.endswith("(writing 0000000000000001.log failed: [Errno 28] as planned)")
        world.disk.plan = lambda _: None
        await asyncio.sleep(12)
        assert await (await client.producer(TOPIC)).send(b"room again")
        await asyncio.gather(*waiting[-20:])
        assert len(lines) == 2
        assert lines[1].startswith("the disk has room again: producers waited for ")


@played(ledger=LedgerSettings(segment_bytes=8 * 1024))
async def test_an_acknowledgement_that_waits_for_room_is_not_called_stored(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    positions = [await producer.send(b"x") for _ in range(300)]
    await asyncio.sleep(3)
    world.disk.plan = fail_on("create", errno.ENOSPC)
    answered = 0
    while not world.broker.log.has_deferred:
        with contextlib.suppress(RefusedError):
            await consumer.ack(positions[2 * answered])
            answered += 1
    assert answered > 20
    for _ in range(2):
        with pytest.raises(RefusedError, match="the disk is full: not stored yet"):
            await consumer.ack(positions[2 * answered])
    world.disk.plan = lambda _: None
    await asyncio.sleep(3)
    await consumer.ack(positions[2 * answered])
    world.crash()
    await world.start()
    acks = world.broker.engine.topics[TOPIC].subscriptions["s"].acks
    assert [o for o in range(300) if acks.is_acked(o)] == [*range(0, 2 * answered + 1, 2)]


@played()
async def test_a_stopped_committer_begins_no_commit(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    position = await producer.send(b"x")
    committer, log = world.broker.committer, world.broker.log
    number = world.broker.engine.topics[TOPIC].log.number
    world.disk.plan = fail_on("write", errno.EMFILE)
    log.create_cursor(number, "t", AckSet(), {})
    with pytest.raises(StorageError):
        await committer.when_durable()
    world.disk.plan = lambda _: None
    assert log.staged_records
    waiting = committer.when_durable()  # it waits for the end of the pause after the failure
    jobs = world.lanes[0].jobs_count
    committer.stop()
    for future in (waiting, committer.when_durable()):
        with pytest.raises(StorageError, match="the broker stops"):
            await future
    consumer.ack_nowait(position)
    await asyncio.sleep(1)
    assert world.lanes[0].jobs_count == jobs


@played()
async def test_a_commit_takes_a_bounded_number_of_acknowledgements(world: World) -> None:
    """A job stages the rest for the next one."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumers = [await client.subscribe(TOPIC, f"s{index}") for index in range(10)]
    position = await producer.send(b"x")
    await asyncio.sleep(1)
    before = commits_count(world)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(committer_module, "ACKS_STAGED_MAX", 3)
        for consumer in consumers[:-1]:
            consumer.ack_nowait(position)
        await consumers[-1].ack(position)
    assert commits_count(world) == before + 2
    world.crash()
    await world.start()
    subscriptions = world.broker.engine.topics[TOPIC].subscriptions.values()
    assert [one.backlog_entries for one in subscriptions] == [0] * 10


@played()
async def test_acknowledgements_that_no_commit_needs_hold_up_nobody(world: World) -> None:
    """Those of subscriptions that are gone are looked at in bounded steps, too."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumers = [await client.subscribe(TOPIC, f"s{index}") for index in range(10)]
    position = await producer.send(b"x")
    await asyncio.sleep(1)
    topic, committer = world.broker.engine.topics[TOPIC], world.broker.committer
    world.lanes[0].freeze()
    running = producer.send_nowait(b"y")
    await asyncio.sleep(0.01)
    for consumer in consumers:
        consumer.ack_nowait(position)
    await asyncio.sleep(0.01)
    removed = list(topic.subscriptions.values())[:9]
    for subscription in removed:
        subscription.removed = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(committer_module, "ACKS_STAGED_MAX", 3)
        durable = committer.when_durable()
        world.lanes[0].thaw()
        await asyncio.gather(running, durable)
    assert not committer._dirty_cursors
    for subscription in removed:
        subscription.removed = False


@played()
async def test_a_failed_commit_visits_only_the_topics_that_it_concerns(world: World) -> None:
    class Unwalked(dict):  # type: ignore[type-arg]
        def values(self) -> None:  # type: ignore[override]
            raise AssertionError("a walk over all topics")

        __iter__ = items = keys = values  # type: ignore[assignment]

    client = await world.connect()
    producers = [await client.producer(f"{TOPIC}-{index}") for index in range(5)]
    engine = world.broker.engine
    topics = engine.by_number
    world.disk.plan = fail_on("write", errno.EMFILE)
    engine.by_number = Unwalked(topics)
    sent = [producers[1].send_nowait(b"x"), producers[3].send_nowait(b"y")]
    await asyncio.sleep(RETRY_DELAY_S / 2)
    engine.by_number = topics
    assert world.broker.log.staged_records
    world.disk.plan = lambda _: None
    await asyncio.gather(*sent)


def receipts_by_turn(world: World, patch: pytest.MonkeyPatch) -> Counter[int]:
    """How many receipts the broker sends in each turn from now on."""
    engine, turn = world.broker.engine, 0
    counts: Counter[int] = Counter()
    begin, send = engine.begin_turn, ConnectionProducers.send_receipt

    def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
        nonlocal turn
        turn += 1
        begin(now_ns, now_ms, log_ms)

    def sent(port: ConnectionProducers, *arguments: Any) -> None:
        counts[turn] += 1
        send(port, *arguments)

    engine.begin_turn = begun  # type: ignore[method-assign]
    patch.setattr(ConnectionProducers, "send_receipt", sent)
    return counts


def receipts_in_order(patch: pytest.MonkeyPatch) -> list[ConnectionProducers]:
    """The connections that get a receipt from now on, one for each."""
    ports: list[ConnectionProducers] = []
    send = ConnectionProducers.send_receipt

    def sent(port: ConnectionProducers, *arguments: Any) -> None:
        ports.append(port)
        send(port, *arguments)

    patch.setattr(ConnectionProducers, "send_receipt", sent)
    return ports


LARGE_COMMITS: dict[str, Any] = {
    "network": NetworkProfile(0, 0, piece_bytes_max=MIB, window_bytes=16 * MIB),
    "settings": {"maxPendingPublishRequestsPerConnection": "100000"},
}


async def freeze(world: World, producer: SimProducer) -> asyncio.Future[Any]:
    """Have a commit with one entry run until the lane is thawed."""
    lane = world.lanes[0]
    lane.latency_ns_min = lane.latency_ns_max = 1
    lane.freeze()
    first = producer.send_nowait(b"goes alone")
    await asyncio.sleep(0.1)
    return first


@played(**LARGE_COMMITS)
async def test_the_receipts_of_a_large_commit_go_out_in_slices_and_in_order(world: World) -> None:
    """A commit with entries of many connections, and one topic with many."""
    clients = [await world.connect() for _ in range(20)]
    producers = [await c.producer(f"{TOPIC}-{n}") for n, c in enumerate(clients)]
    first = await freeze(world, producers[0])
    sent = [p.send_nowait(b"x") for _ in range(50) for p in producers]
    sent += [producers[0].send_nowait(b"y") for _ in range(3_000)]
    await asyncio.sleep(0.5)
    with pytest.MonkeyPatch.context() as patch:
        counts = receipts_by_turn(world, patch)
        world.lanes[0].thaw()
        positions = [await future for future in [first, *sent]]
    assert counts.total() == 1 + 50 * 20 + 3_000
    assert max(counts.values()) <= (COMMIT_UNITS + JOB_STEP_UNITS_MAX) * RECEIPTS_PER_UNIT
    of_first = [positions[0], *positions[1:1001:20], *positions[1001:]]
    assert of_first == sorted(of_first)
    assert world.broker.engine.topics[f"{TOPIC}-0"].publishing.pending_count == 0


@played(**LARGE_COMMITS)
async def test_the_receipts_of_a_large_commit_do_not_wait_for_crowds_of_clients(
    world: World,
) -> None:
    """A job of one client cannot hold up the receipts of all."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    first = await freeze(world, producer)
    sent = [producer.send_nowait(b"x %d" % n) for n in range(5_000)]
    await asyncio.sleep(0.5)
    publishing = world.broker.engine.topics[TOPIC].publishing
    waiting: list[int] = []

    async def walk() -> None:
        await world.broker.work.give_way(PIECE_UNITS, JobClass.COMMAND)
        waiting.append(publishing.pending_count)

    crowd: list[asyncio.Task[None]] = []
    resolve = Committer._resolve_rest

    def beside_crowd(committer: Committer, steps: Iterator[int]) -> None:
        if not crowd:
            crowd.extend(world.loop.create_task(walk()) for _ in range(3_000))
        resolve(committer, steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Committer, "_resolve_rest", beside_crowd)
        world.lanes[0].thaw()
        for future in [first, *sent]:
            await future
    assert crowd
    await asyncio.gather(*crowd)
    assert sum(map(bool, waiting)) < 100, "the receipts have more of a turn than clients"


@played(**LARGE_COMMITS)
async def test_receipts_go_out_faster_than_sends_come(world: World) -> None:
    """Else each commit is larger than the last, and all wait for as many SENDs as all clients may
    have unanswered: 6 s beside 50 connections, which is 50,000."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    first = await freeze(world, producer)
    sent = [producer.send_nowait(b"x") for _ in range(20_000)]
    await asyncio.sleep(0.5)
    with pytest.MonkeyPatch.context() as patch:
        counts = receipts_by_turn(world, patch)
        world.lanes[0].thaw()
        for future in [first, *sent]:
            await future
    busy = sorted(counts.values())[-5:]
    assert min(busy) >= 3 * LOOP_UNITS, "the most SENDs of an iteration"


async def make_other_namespace(world: World) -> None:
    """``other/ns``, of a tenant of its own."""
    broker = world.broker
    row = TenantRow(allowed_clusters=("standalone",))
    await broker.commit(broker.catalog.plan_create_tenant("other", row))
    await broker.commit(broker.catalog.plan_create_namespace(NamespaceName("other", "ns")))


@played(**LARGE_COMMITS)
async def test_the_receipts_of_a_small_tenant_do_not_wait_for_those_of_a_large_one(
    world: World,
) -> None:
    client, other = await world.connect(), await world.connect()
    producers = [await client.producer(f"{TOPIC}-{n}") for n in range(3)]
    await make_other_namespace(world)
    small = await other.producer("persistent://other/ns/t")
    first = await freeze(world, producers[0])
    sent = [producer.send_nowait(b"x") for producer in producers for _ in range(4_000)]
    await asyncio.sleep(0.5)
    one = small.send_nowait(b"y")
    await asyncio.sleep(0.1)
    topics: list[str] = []
    durable = TopicPublishing.entries_durable

    def noted(publishing: TopicPublishing, *arguments: Any) -> bool:
        topics.append(str(publishing.topic.name))
        return durable(publishing, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TopicPublishing, "entries_durable", noted)
        world.lanes[0].thaw()
        for future in [first, one, *sent]:
            await future
    assert len(topics) > 100
    assert topics.index("persistent://other/ns/t") < 4, "behind one turn of the other tenant"


@played(**LARGE_COMMITS)
async def test_the_receipts_of_one_tenant_hold_up_none_of_another(world: World) -> None:
    """A burst to thousands of topics took seconds to answer, and all SENDs of others that came
    meanwhile were answered behind it."""
    await make_other_namespace(world)
    broker = world.broker
    client, another = await world.connect(), await world.connect()
    crowd = [await client.producer(f"{TOPIC}-{number}") for number in range(300)]
    other = await another.producer("persistent://other/ns/t")
    first = await freeze(world, crowd[0])
    sent = [producer.send_nowait(b"x") for producer in crowd for _ in range(20)]
    await asyncio.sleep(0.5)
    with_them = other.send_nowait(b"in the same commit")
    late: list[asyncio.Future[Any]] = []
    with_them.add_done_callback(lambda _: late.append(other.send_nowait(b"in the next one")))
    await asyncio.sleep(0.1)

    resolve = Committer._resolve_rest

    def later(committer: Committer, steps: Iterator[int]) -> None:
        world.loop.call_later(0.02, resolve, committer, steps)  # a long iteration

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Committer, "_resolve_rest", later)
        ports = receipts_in_order(patch)
        world.lanes[0].thaw()
        await asyncio.gather(first, *sent, with_them)
        await late[0]
    assert len(ports) == len(sent) + 3
    of_other = [at for at, port in enumerate(ports) if port is not ports[0]]
    assert of_other[0] < COMMIT_UNITS
    assert of_other[1] < len(sent) / 2
    assert broker.engine.topics[f"{TOPIC}-299"].publishing.pending_count == 0


@played(network=LARGE_COMMITS["network"])
async def test_who_is_answered_goes_on_while_receipts_of_another_tenant_wait(world: World) -> None:
    """What a connection has beyond its unanswered SENDs waited for the receipts of all, unless
    another commit ended."""
    await make_other_namespace(world)
    clients, another = [await world.connect() for _ in range(20)], await world.connect()
    crowd = [await client.producer(f"{TOPIC}-{at}") for at, client in enumerate(clients)]
    other = await another.producer("persistent://other/ns/t")
    first = await freeze(world, crowd[0])
    sent = [producer.send_nowait(b"x") for producer in crowd for _ in range(950)]
    await asyncio.sleep(0.5)
    world.lanes[0].latency_ns_min = world.lanes[0].latency_ns_max = NS_PER_S // 1_000
    more: list[asyncio.Future[Any]] = []
    sent[0].add_done_callback(lambda _: more.extend(other.send_nowait(b"x") for _ in range(1_200)))
    resolve = Committer._resolve_rest

    def later(committer: Committer, steps: Iterator[int]) -> None:
        world.loop.call_later(0.02, resolve, committer, steps)  # a long iteration

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Committer, "_resolve_rest", later)
        world.lanes[0].thaw()
        await sent[0]
        await asyncio.gather(*more)
        assert sum(not each.done() for each in sent) > len(sent) / 2
        await asyncio.gather(first, *sent)


@played(**LARGE_COMMITS)
async def test_durable_means_that_the_receipts_are_sent_also_of_a_large_commit(
    world: World,
) -> None:
    """A topic that is unloaded then has answered every SEND, so that no client sends one again."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    first = await freeze(world, producer)
    sent = [producer.send_nowait(b"x %d" % n) for n in range(20_000)]
    await asyncio.sleep(0.5)
    topic, asked = world.broker.engine.topics[TOPIC], []
    publishing = topic.publishing

    async def ask() -> int:
        asked.append(publishing.pending_count)
        await world.broker.when_durable(topic)
        return publishing.pending_count

    asking: list[asyncio.Task[int]] = []
    sent[0].add_done_callback(lambda _: asking.append(world.loop.create_task(ask())))
    world.lanes[0].thaw()
    await asyncio.gather(first, *sent)
    assert asked[0] > 0, "asked while receipts were being sent"
    assert await asking[0] == 0


@played(**LARGE_COMMITS)
async def test_who_asks_on_a_full_disk_waits_for_receipts_of_what_is_stored(world: World) -> None:
    """A producer that closes has the receipts of what is durable, else its client would
    send that again."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    first = await freeze(world, producer)
    sent = [producer.send_nowait(b"x %d" % n) for n in range(20_000)]
    await asyncio.sleep(0.5)
    topic = world.broker.engine.topics[TOPIC]

    async def ask() -> int:
        with pytest.raises(StorageError, match="the disk is full"):
            await world.broker.when_durable(topic)
        return topic.publishing.pending_count

    asking: list[asyncio.Task[int]] = []
    sent[0].add_done_callback(lambda _: asking.append(world.loop.create_task(ask())))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CommitLog, "has_deferred", property(lambda _: bool(asking)))
        world.lanes[0].thaw()
        await asyncio.gather(first, *sent)
        assert await asking[0] == 0


@played(**LARGE_COMMITS)
async def test_who_waits_for_a_commit_does_not_wait_for_receipts(world: World) -> None:
    """As a new subscription of another tenant does."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    first = await freeze(world, producer)
    sent = [producer.send_nowait(b"x %d" % n) for n in range(20_000)]
    await asyncio.sleep(0.5)
    publishing = world.broker.engine.topics[TOPIC].publishing

    async def ask() -> int:
        await world.broker.when_durable()
        return publishing.pending_count

    asking: list[asyncio.Task[int]] = []
    sent[0].add_done_callback(lambda _: asking.append(world.loop.create_task(ask())))
    world.lanes[0].thaw()
    await asyncio.gather(first, *sent)
    assert await asking[0] > 1_000


@pytest.mark.parametrize("is_own", [False, True])
def test_a_trim_waits_for_receipts_of_what_it_removes_alone(is_own: bool) -> None:
    """Most commits of a busy broker have a trim: behind it nothing of other tenants was stored
    until all receipts of a crowd were sent."""

    async def story(world: World) -> None:
        client = await world.connect()
        producer = await client.producer(TOPIC)
        other = await client.producer(f"{TOPIC}-other")
        for _ in range(10):
            await other.send(b"x")
        first = await freeze(world, producer)
        sent = [producer.send_nowait(b"x %d" % n) for n in range(20_000)]
        await asyncio.sleep(0.5)
        topics = world.broker.engine.topics
        trimmed = topics[TOPIC if is_own else f"{TOPIC}-other"].log
        publishing = topics[TOPIC].publishing

        async def trim() -> int:
            world.broker.log.stage_trim(trimmed, 15_000 if is_own else 5)
            await world.broker.when_durable()
            assert trimmed.first == (15_000 if is_own else 5)
            return publishing.pending_count

        trimming: list[asyncio.Task[int]] = []
        sent[0].add_done_callback(lambda _: trimming.append(world.loop.create_task(trim())))
        resolve = Committer._resolve_rest

        def later(committer: Committer, steps: Iterator[int]) -> None:
            world.loop.call_later(0.02, resolve, committer, steps)  # a long iteration

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Committer, "_resolve_rest", later)
            world.lanes[0].thaw()
            await asyncio.gather(first, *sent)
        unanswered = await trimming[0]
        assert unanswered == 0 if is_own else unanswered > 1_000

    played(**LARGE_COMMITS)(story)()


@played(**LARGE_COMMITS)
async def test_a_commit_that_fails_behind_a_large_one_takes_back_nothing_durable(
    world: World,
) -> None:
    """Its end waits for the receipts of the commit before."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    first = await freeze(world, producer)
    sent = [producer.send_nowait(b"x %d" % n) for n in range(5_000)]
    await asyncio.sleep(0.5)
    topic, restage, restaged = (
        world.broker.engine.topics[TOPIC],
        [],
        TopicPublishing.restage_pending,
    )
    late: list[asyncio.Future[Any]] = []

    def send_late(_: object) -> None:
        late.append(producer.send_nowait(b"late"))
        world.lanes[0].fail_next(StorageError("as planned", retryable=True))

    def noted(publishing: TopicPublishing) -> None:
        restage.append(publishing.pending_count)
        restaged(publishing)

    sent[0].add_done_callback(send_late)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TopicPublishing, "restage_pending", noted)
        world.lanes[0].thaw()
        await asyncio.gather(first, *sent)
        await asyncio.gather(*late)
    assert restage == [1], "what is durable already is not stored again"
    assert topic.log.end == 5_002


@played()
async def test_very_many_acknowledgements_are_staged_in_slices(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    count = 5 * committer_module.ACKS_STAGED_MAX
    position = await producer.send(b"x")
    topic, log = world.broker.engine.topics[TOPIC], world.broker.log
    for number in range(count):
        await world.broker.subscriptions.create(topic, f"s{number}", at_ordinal=0, properties={})
    engine, stage, begin = world.broker.engine, log.stage_acks, world.broker.engine.begin_turn
    turns = [0]

    def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
        turns.append(0)
        begin(now_ns, now_ms, log_ms)

    def staged(cursor_id: int) -> None:
        turns[-1] += 1
        stage(cursor_id)

    engine.begin_turn = begun  # type: ignore[method-assign]
    log.stage_acks = staged  # type: ignore[method-assign]
    commits = commits_count(world)
    for subscription in topic.subscriptions.values():
        subscription.skip_to(1)
    await world.broker.committer.when_durable()
    assert sum(turns) == count
    assert max(turns) <= 2 * committer_module.ACKS_STAGED_MAX + JOB_STEP_UNITS_MAX
    assert commits_count(world) <= commits + 4
    assert position
