"""SENDs of one connection: receipts in order, refusals, full, failed and slow disks."""

from __future__ import annotations

import asyncio
import errno

import pytest

from headgate.base.names import parse_topic
from headgate.base.park_cause import ParkCause
from headgate.base.positions import EARLIEST, Position
from headgate.base.units import KIB
from headgate.base.work_units import SEND_UNITS_MAX
from headgate.fs import Operation
from headgate.ledger import LedgerSettings
from headgate.testing import ConnectionLostError, NetworkProfile, RefusedError, World
from headgate.wire import client as frames
from headgate.wire.codes import ServerError
from headgate.wire.entry import LENGTH, build_entry, crc32c
from headgate.wire.limits import METADATA_BYTES_MAX
from headgate.wire.messages import BaseCommand, MessageMetadata
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.publishing import in_order, limit_topic


@played()
async def test_receipts_come_in_the_order_of_the_sends(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    receipts = await asyncio.gather(*[producer.send_nowait(b"%d" % i) for i in range(50)])
    assert receipts == sorted(receipts)
    assert len({position.ledger_id for position in receipts}) == 1
    assert [position.entry_id for position in receipts] == list(range(50))


@played()
async def test_nothing_is_visible_before_its_receipt(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    world.lanes[0].freeze()
    sent = producer.send_nowait(b"early")
    await asyncio.sleep(1)
    assert not sent.done()
    assert not consumer.queue
    assert (await consumer.last_message_id()).entry_id == -1
    world.lanes[0].thaw()
    position = await sent
    assert (await consumer.receive()).position == position


@played(network=NetworkProfile(piece_bytes_max=1))
async def test_frames_may_come_byte_by_byte(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    await producer.send(b"x" * 100)
    assert (await consumer.receive()).payload == b"x" * 100


@played()
async def test_a_batch_is_one_entry(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    await producer.send(b"", batch=[b"a", b"b", b"c"])
    consumer.flow(1)
    message = await consumer.receive()
    assert message.payloads == (b"a", b"b", b"c")
    assert consumer.permits == -2


@played()
async def test_chunks_are_counted(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    producer.sequence_id = 0
    for is_chunk in (True, True, False):
        entry = producer.entry(b"x")
        head = frames.send_head(producer.producer_id, 0, len(entry), is_chunk=is_chunk)
        client.write(head + entry)
    await asyncio.sleep(0.1)
    (held,) = world.broker.engine.topics[TOPIC].producers.values()
    assert held.chunks_published == 2


@played()
async def test_a_wrong_checksum_costs_one_message(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    producer.sequence_id = 6
    body = bytearray(producer.entry(b"damaged"))
    body[-1] ^= 1
    client.write(frames.send(producer.producer_id, 6, bytes(body)))
    await producer.send(b"whole")
    assert (await consumer.receive()).payload == b"whole"
    (answer,) = client.unexpected
    assert answer.send_error.sequence_id == 6
    assert answer.send_error.error == ServerError.CHECKSUM_ERROR


@played(settings={"maxPendingPublishRequestsPerConnection": "10"})
async def test_a_flood_is_read_as_fast_as_it_is_stored(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"x" * 1_000) for _ in range(500)]
    await asyncio.sleep(0.1)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.publishing.pending_count == 10
    world.lanes[0].thaw()
    receipts = await asyncio.gather(*sent)
    assert [position.entry_id for position in receipts] == list(range(500))


@played(
    ledger=LedgerSettings(
        segment_bytes=64 * 1024, checkpoint_bytes=256 * 1024, ledger_age_ms_min=0
    ),
    capacity_bytes=256 * 1024,
)
async def test_a_full_disk_holds_what_is_sent_and_lets_it_go_in_order(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    sent = [producer.send_nowait(b"%d " % number + b"x" * 1_000) for number in range(300)]
    await asyncio.sleep(5)
    stored = sum(receipt.done() for receipt in sent)
    assert 0 < stored < 300
    assert in_order(sent[:stored])
    topic = world.broker.engine.topics[TOPIC]
    assert topic.publishing.parking is not None
    assert topic.publishing.parking.waiting(ParkCause.DISK_FULL).messages == 300 - stored
    while topic.subscriptions["s"].backlog_entries:
        message = await consumer.receive()
        await consumer.ack(message.position)
    assert not consumer.queue
    # What is subscribed to and acknowledged is stored, so a power cut would lose none of it.
    other = await client.subscribe(TOPIC, "other", start=EARLIEST)
    await other.ack((await other.receive()).position)
    world.fs.capacity_bytes = None
    await asyncio.gather(*sent)
    assert in_order(sent)
    found = [(await consumer.receive()).payload.split()[0] for _ in range(300 - stored)]
    assert found == [b"%d" % number for number in range(stored, 300)]
    assert not topic.publishing.parking
    assert not consumer.queue


@played()
async def test_a_failed_disk_ends_publishing_and_says_so(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await producer.send(b"stored")

    def plan(operation: object) -> None:
        if getattr(operation, "kind", "") == "sync":
            raise OSError(5, "input/output error")

    world.disk.plan = plan
    for _ in range(2):
        with pytest.raises(RefusedError) as refusal:
            await producer.send(b"lost")
        assert refusal.value.code == ServerError.PERSISTENCE_ERROR
        producer = await client.producer(TOPIC)
    consumer = await client.reader(TOPIC, EARLIEST)
    assert (await consumer.receive()).payload == b"stored"


@played()
async def test_what_found_no_room_is_stored_later_once_and_in_order(world: World) -> None:
    await refused_for_a_moment(world, errno.ENOSPC)


@played()
async def test_what_a_bad_moment_refused_is_stored_next_once_and_in_order(world: World) -> None:
    await refused_for_a_moment(world, errno.EMFILE)


async def refused_for_a_moment(world: World, code: int) -> None:
    """A commit fails: what was in it, and what came after it, is stored all the same, and no
    producer hears of it."""
    client = await world.connect()
    producer, other = await client.producer(TOPIC), await client.producer(f"{TOPIC}-2")
    consumer = await client.subscribe(TOPIC, "s")
    await producer.send(b"0")
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"%d" % number) for number in range(1, 4)]
    beside = other.send_nowait(b"was in it, too")
    await asyncio.sleep(0.1)

    def plan(operation: Operation) -> None:
        if operation.kind == "write":
            world.disk.plan = lambda _: None
            raise OSError(code, "not now")

    world.disk.plan = plan
    world.lanes[0].thaw()
    while len(sent) < 500:
        # Some of these are on their way when the commit fails.
        sent.append(producer.send_nowait(b"%d" % (len(sent) + 1)))
        await asyncio.sleep(0.000_1)
    await asyncio.gather(*sent, beside)
    assert world.disk.plan is not plan
    assert in_order(sent)
    received = [(await consumer.receive()).payload for _ in range(len(sent) + 1)]
    assert received == [b"%d" % number for number in range(len(sent) + 1)]
    assert not consumer.queue
    topic = world.broker.engine.topics[TOPIC]
    assert (topic.messages_in(), producer.is_open) == (501, True)


@played(ledger=LedgerSettings(segment_bytes=8_192))
async def test_a_disk_that_is_full_now_and_then_harms_no_order(world: World) -> None:
    client = await world.connect()
    producers = [await client.producer(TOPIC) for _ in range(3)]
    consumer = await client.subscribe(TOPIC, "s")

    def full(operation: Operation) -> None:
        if operation.kind in ("create", "allocate"):
            raise OSError(errno.ENOSPC, "no space left")

    sent: list[list[asyncio.Future[Position]]] = [[], [], []]
    for step in range(900):
        world.disk.plan = full if step % 200 < 150 else lambda _: None
        sent[step % 3].append(producers[step % 3].send_nowait(b"%d %d" % (step % 3, step)))
        await asyncio.sleep(0.01)
    world.disk.plan = lambda _: None
    await asyncio.gather(*sent[0], *sent[1], *sent[2])
    assert all(in_order(mine) for mine in sent)
    received = [(await consumer.receive()).payload.split() for _ in range(900)]
    for mine in range(3):
        steps = [int(step) for whose, step in received if int(whose) == mine]
        assert steps == list(range(mine, 900, 3))
    assert world.broker.disk.full_ns(world.broker.engine.now_ns) > 0


@played(ledger=LedgerSettings(segment_bytes=64 * 1024))
async def test_beyond_the_bounds_a_full_disk_closes_producers_and_no_connection(
    world: World,
) -> None:
    client = await world.connect()
    producer, modest = await client.producer(TOPIC), await client.producer(f"{TOPIC}-2")
    consumer = await client.subscribe(TOPIC, "s")
    position = await producer.send(b"stored")
    world.broker.engine.limits.parked_bytes_per_connection_max = 20_000

    def full(operation: Operation) -> None:
        if operation.kind in ("create", "allocate"):
            raise OSError(errno.ENOSPC, "no space left")

    world.disk.plan = full
    sent = [producer.send_nowait(b"x" * 1_000) for _ in range(70)]
    await asyncio.sleep(2)
    assert world.broker.log.full
    sent += [producer.send_nowait(b"x" * 1_000) for _ in range(50)]
    kept = modest.send_nowait(b"waits")
    await asyncio.sleep(3)
    assert not producer.is_open
    assert modest.is_open
    # It would send all of it again at once.
    with pytest.raises(RefusedError, match="the disk is full") as refusal:
        await client.producer(TOPIC)
    assert refusal.value.code == ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_ERROR
    await consumer.ack(position)
    world.disk.plan = lambda _: None
    await kept
    again = await client.producer(TOPIC)
    await again.send(b"room again")
    stored = [receipt for receipt in sent if receipt.done() and not receipt.exception()]
    assert world.broker.engine.topics[TOPIC].messages_in() == len(stored) + 2


@played(ledger=LedgerSettings(segment_bytes=8_192))
async def test_a_producer_that_waits_too_long_for_a_full_disk_is_closed_and_may_wait_again(
    world: World,
) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)

    def full(operation: Operation) -> None:
        if operation.kind in ("create", "allocate"):
            raise OSError(errno.ENOSPC, "no space left")

    world.disk.plan = full
    sent = [producer.send_nowait(b"x" * 1_000) for _ in range(50)]
    await asyncio.sleep(19)
    assert producer.is_open
    await asyncio.sleep(5)
    assert not producer.is_open
    await asyncio.gather(*sent, return_exceptions=True)
    again = await client.producer(TOPIC)
    kept = again.send_nowait(b"sent again")
    await asyncio.sleep(5)
    assert not kept.done()
    world.disk.plan = lambda _: None
    await kept


@played()
async def test_only_durable_entries_survive_the_power_cut(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    kept = await producer.send(b"kept")
    world.lanes[0].freeze()
    lost = producer.send_nowait(b"lost")
    await asyncio.sleep(0.5)
    world.crash()
    with pytest.raises(ConnectionLostError):
        await lost
    await world.start()
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    message = await consumer.receive()
    assert (message.payload, message.position) == (b"kept", kept)
    later = await (await client.producer(TOPIC)).send(b"later")
    assert later.ledger_id > kept.ledger_id


@played()
async def test_a_send_of_an_unknown_producer_ends_the_connection(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    producer.sequence_id = 0
    client.write(frames.send(99, 0, producer.entry(b"x")))
    await client.lost


@played(settings={"keepAliveIntervalSeconds": "5"})
async def test_a_disk_that_hangs_costs_nobody_the_connection(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await other.subscribe(TOPIC, "s")
    await producer.send(b"stored before")
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"%d" % index) for index in range(2_000)]
    await asyncio.sleep(120)
    assert (await consumer.receive()).payload == b"stored before"
    assert await other.lookup(TOPIC)
    world.lanes[0].thaw()
    await asyncio.gather(*sent)
    assert [(await consumer.receive()).payload for _ in range(2_000)] == [
        b"%d" % index for index in range(2_000)
    ]


@played(
    ledger=LedgerSettings(
        segment_bytes=64 * 1024, checkpoint_bytes=256 * 1024, ledger_age_ms_min=0
    ),
    capacity_bytes=256 * 1024,
)
async def test_consumers_go_on_while_the_disk_is_full(world: World) -> None:
    client, reader = await world.connect(), await world.connect()
    producers = [await client.producer(f"{TOPIC}-{index}") for index in range(3)]
    consumers = [await reader.subscribe(p.topic, "s", queue_size=10) for p in producers]
    answers = [p.send_nowait(b"x" * 1_000) for _ in range(100) for p in producers]
    await asyncio.sleep(5)
    assert not all(answer.done() for answer in answers)
    stored = [answers[index::3] for index in range(3)]
    for consumer, of_topic in zip(consumers, stored, strict=True):
        positions = [answer.result() for answer in of_topic if answer.done()]
        got = [(await consumer.receive()).position for _ in positions]
        assert got == positions
        await consumer.ack_through(got[-1])
    world.crash()
    world.fs.capacity_bytes = None
    await world.start()
    for topic in (producer.topic for producer in producers):
        assert world.broker.engine.topics[topic].subscriptions["s"].backlog_entries == 0


@played()
async def test_a_lie_about_a_number_of_messages_ends_the_liars_connection_only(
    world: World,
) -> None:
    other = await world.connect()
    honest = await other.producer(TOPIC)
    consumer = await other.subscribe(TOPIC, "s")
    for claimed in (2**31 - 1, 2):
        liar = await world.connect()
        producer = await liar.producer(TOPIC)
        producer.sequence_id = 0
        body = producer.entry(b"x")
        liar.write(frames.send(producer.producer_id, 0, body, message_count=claimed))
        await liar.lost
    evader = await world.connect()
    producer = await evader.producer(TOPIC)
    producer.sequence_id = 0
    body = producer.entry(b"", batch=[b"x"] * 1_000)
    evader.write(frames.send(producer.producer_id, 0, body, message_count=1))
    await evader.lost
    await asyncio.sleep(0.1)
    position = await honest.send(b"true")
    assert (await consumer.receive()).position == position
    assert consumer.permits == 999


DEDUPLICATED = {"brokerDeduplicationEnabled": "true"}


@played(settings=DEDUPLICATED)
async def test_a_message_that_was_damaged_on_its_way_may_be_sent_again(world: World) -> None:
    """Later messages must not be stored before it: then it would be taken for a duplicate."""
    client = await world.connect()
    producer = await client.producer(TOPIC, name="p")
    producer.sequence_id = 0
    body = bytearray(producer.entry(b"first"))
    body[-1] ^= 1
    client.write(frames.send(producer.producer_id, 0, bytes(body)))
    later = producer.send_nowait(b"second")
    await asyncio.sleep(1)
    assert not later.done() or later.exception() is not None
    again = await client.producer(TOPIC, name="p")
    assert again.last_sequence_id == -1
    assert await again.send(b"first") != Position(-1, -1)


@played(settings=DEDUPLICATED)
async def test_deduplication_acts_as_soon_as_it_is_set(world: World) -> None:
    catalog, name = world.broker.catalog, parse_topic(TOPIC)
    client = await world.connect()
    producer = await client.producer(TOPIC, name="p")
    await producer.send(b"x")
    producer.sequence_id = -1
    assert await producer.send(b"x") == Position(-1, -1)
    await world.broker.commit(catalog.plan_topic_policies(name, deduplication=False))
    producer.sequence_id = -1
    assert await producer.send(b"x") != Position(-1, -1)
    await world.broker.commit(catalog.plan_topic_policies(name, deduplication=True))
    producer.sequence_id = -1
    assert await producer.send(b"x") != Position(-1, -1)
    producer.sequence_id = -1
    assert await producer.send(b"x") == Position(-1, -1)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.log.end == 3
    assert topic.publishing.duplicates_dropped == 2
    assert world.broker.engine.duplicates_dropped == 2


@played(settings=DEDUPLICATED)
async def test_chunks_of_a_message_share_a_sequence_id(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC, name="p")
    for expected in (0, -1):  # of the second time only the last chunk is dropped, as in Pulsar
        for chunk in range(3):
            metadata = MessageMetadata(
                producer_name="p", sequence_id=5, publish_time=1, uuid="u", chunk_id=chunk,
                num_chunks_from_msg=3,
            )  # fmt: skip
            body = build_entry(metadata, b"part")
            head = frames.send_head(producer.producer_id, 5, len(body), is_chunk=True)
            client.write(head + body)
        await asyncio.sleep(1)
        assert world.broker.engine.topics[TOPIC].log.end == (3 if expected == 0 else 5)


def metadata_of(size_bytes: int) -> bytes:
    """An entry whose metadata has this size, of empty properties."""
    data = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1).SerializeToString()
    data += b"\x22\x00" * ((size_bytes - len(data)) // 2)
    return LENGTH.pack(len(data)) + data


@played()
async def test_a_message_with_too_much_metadata_is_refused_in_its_turn(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    sent = [producer.send_nowait(b"before")]
    producer.sequence_id += 1
    too_long = producer.send_entry_nowait(producer.sequence_id, metadata_of(METADATA_BYTES_MAX + 9))
    sent.append(producer.send_nowait(b"after"))
    with pytest.raises(RefusedError, match=r"Message metadata of 5242.. bytes") as refused:
        await too_long
    assert refused.value.code == ServerError.NOT_ALLOWED_ERROR
    assert [position.entry_id for position in await asyncio.gather(*sent)] == [0, 1]


@played()
async def test_metadata_counts_in_the_work_of_its_send(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    (port,) = (c.producer_port for c in world.broker.connections)
    for size_bytes, units in ((100, 1), (64 * KIB, 64), (METADATA_BYTES_MAX, SEND_UNITS_MAX - 1)):
        command = BaseCommand()
        command.send.producer_id = producer.producer_id
        command.send.sequence_id = size_bytes
        assert port.send(command, metadata_of(size_bytes)) in {units, units + 1}


@played(settings={"brokerDeduplicationEnabled": "true"})
async def test_a_parked_message_whose_producer_has_no_name_is_like_others(world: World) -> None:
    """When its turn came it was read for deduplication, and a name that is no text ended the
    broker."""
    await limit_topic(world, 1)
    client = await world.connect()
    producer = await client.producer(TOPIC, name="ab")
    sent = [producer.send_nowait(b"%d" % number) for number in range(3)]
    metadata = MessageMetadata(producer_name="ab", sequence_id=9, publish_time=1)
    covered = build_entry(metadata, b"odd", checksum=False).replace(b"ab", b"\xffb")
    body = b"\x0e\x01" + crc32c(covered).to_bytes(4) + covered
    client.write(frames.send(producer.producer_id, 9, body))
    await asyncio.sleep(10)
    assert all(each.done() for each in sent)
    assert world.broker.engine.topics[TOPIC].log.end == 4
