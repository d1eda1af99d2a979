"""Producers as they see the broker: receipts, names, order, refusals, what a full disk does."""

from __future__ import annotations

import asyncio
import errno

import pytest

from headgate.base.errors import StorageError
from headgate.base.positions import EARLIEST, Position
from headgate.fs import Operation
from headgate.ledger import LedgerSettings
from headgate.testing import ConnectionLostError, NetworkProfile, RefusedError, World
from headgate.wire import client as frames
from headgate.wire.codes import ProducerAccessMode, ServerError
from tests.unit.broker.playing import TOPIC, played


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
async def test_a_producers_name_is_taken_once(world: World) -> None:
    client = await world.connect()
    first = await client.producer(TOPIC, name="p")
    with pytest.raises(RefusedError) as refusal:
        await (await world.connect()).producer(TOPIC, name="p")
    assert refusal.value.code == ServerError.PRODUCER_BUSY
    assert await first.send(b"still here") is not None
    await first.close()
    again = await client.producer(TOPIC, name="p")
    assert again.name == "p"


@played()
async def test_a_silent_holder_of_a_name_gives_way(world: World) -> None:
    silent = await world.connect()
    await silent.producer(TOPIC, name="p")
    silent.transport.silence()
    before_s = world.now_s
    taken = await (await world.connect()).producer(TOPIC, name="p")
    assert taken.name == "p"
    assert world.now_s - before_s < 6


@played()
async def test_generated_names_differ(world: World) -> None:
    client = await world.connect()
    names = {(await client.producer(TOPIC)).name for _ in range(5)}
    assert len(names) == 5


@played()
async def test_an_exclusive_producer_is_alone(world: World) -> None:
    client = await world.connect()
    exclusive = await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    with pytest.raises(RefusedError) as refusal:
        await client.producer(TOPIC)
    assert refusal.value.code == ServerError.PRODUCER_BUSY
    await exclusive.close()
    await client.producer(TOPIC)
    with pytest.raises(RefusedError) as refusal:
        await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    assert refusal.value.code == ServerError.PRODUCER_FENCED


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


@played()
async def test_closing_waits_for_the_receipts(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    sent = [producer.send_nowait(b"%d" % i) for i in range(5)]
    await producer.close()
    assert all(future.done() and future.exception() is None for future in sent)


@played(settings={"maxPendingPublishRequestsPerConnection": "10"})
async def test_a_flood_is_read_as_fast_as_it_is_stored(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"x" * 1_000) for _ in range(500)]
    await asyncio.sleep(0.1)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.pending_count == 10
    world.lanes[0].thaw()
    receipts = await asyncio.gather(*sent)
    assert [position.entry_id for position in receipts] == list(range(500))


@played(
    ledger=LedgerSettings(
        segment_bytes=64 * 1024, checkpoint_bytes=256 * 1024, ledger_age_ms_min=0
    ),
    capacity_bytes=256 * 1024,
)
async def test_a_full_disk_refuses_publishes_and_recovers(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    sent = await asyncio.gather(
        *[producer.send_nowait(b"x" * 1_000) for _ in range(300)], return_exceptions=True
    )
    refused = [answer for answer in sent if isinstance(answer, RefusedError)]
    assert refused
    assert {answer.code for answer in refused} == {ServerError.PERSISTENCE_ERROR}
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    while subscription.backlog_entries:
        message = await consumer.receive()
        await consumer.ack(message.position)
    with pytest.raises(RefusedError):
        await (await client.producer(TOPIC)).send(b"still full")
    assert not consumer.queue
    world.fs.capacity_bytes = None
    await asyncio.sleep(3)
    await (await client.producer(TOPIC)).send(b"room again")
    assert (await consumer.receive()).payload == b"room again"


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


def answered(futures: list[asyncio.Future[Position]]) -> list[str]:
    """What became of each SEND: stored, refused or ended (its producer was closed)."""
    words = {type(None): "stored", RefusedError: "refused", ConnectionLostError: "ended"}
    return [words[type(future.exception())] for future in futures]


@played()
async def test_after_a_failed_commit_nothing_overtakes_what_was_refused(world: World) -> None:
    client = await world.connect()
    producer, other = await client.producer(TOPIC), await client.producer(f"{TOPIC}-2")
    consumer = await client.subscribe(TOPIC, "s")
    await producer.send(b"0")
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"%d" % number) for number in range(1, 4)]
    await asyncio.sleep(0.1)

    def plan(operation: Operation) -> None:
        if operation.kind == "write":
            world.disk.plan = lambda _: None
            raise OSError(errno.ENOSPC, "no space left")

    world.disk.plan = plan
    world.lanes[0].thaw()
    while producer.is_open and len(sent) < 1_000:
        # The last of these are on their way when the refusals are.
        sent.append(producer.send_nowait(b"%d" % (len(sent) + 1)))
        await asyncio.sleep(0.000_1)
    await asyncio.sleep(1)
    words = answered(sent)
    assert words[:3] == ["refused"] * 3
    assert "stored" not in words
    assert "ended" in words
    assert client.is_open
    again = await client.producer(TOPIC, name=producer.name)
    await asyncio.gather(*[again.send_nowait(b"%d" % (n + 1)) for n in range(len(sent))])
    received = [(await consumer.receive()).payload for _ in range(len(sent) + 1)]
    assert received == [b"%d" % number for number in range(len(sent) + 1)]
    await other.send(b"was not in it")


@played(ledger=LedgerSettings(segment_bytes=8_192))
async def test_after_a_full_disk_nothing_overtakes_what_was_refused(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")

    def full(operation: Operation) -> None:
        if operation.kind in ("create", "allocate"):
            raise OSError(errno.ENOSPC, "no space left")

    world.disk.plan = full
    sent: list[asyncio.Future[Position]] = []
    while producer.is_open and len(sent) < 1_000:
        sent.append(producer.send_nowait(b"%d" % len(sent)))
        await asyncio.sleep(0.001)
    world.disk.plan = lambda _: None
    await asyncio.sleep(1)
    words = answered(sent)
    refused = words.index("refused")
    assert "stored" not in words[refused:]
    again = await client.producer(TOPIC, name=producer.name)
    first_lost = next(i for i, word in enumerate(words) if word != "stored")
    for number in range(first_lost, len(sent)):
        await again.send(b"%d" % number)
    first_seen: dict[bytes, None] = {}
    while consumer.queue:
        first_seen[(await consumer.receive()).payload] = None
    assert list(first_seen) == [b"%d" % number for number in range(len(sent))]


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


@played()
async def test_a_metadata_disk_that_refuses_costs_one_answer(world: World) -> None:
    client = await world.connect()
    old = await client.producer(TOPIC)
    world.store.fail_next(StorageError("the metadata's disk is full", retryable=True))
    with pytest.raises(RefusedError, match="is full") as refusal:
        await client.producer(f"{TOPIC}-new")
    assert refusal.value.code == ServerError.PERSISTENCE_ERROR
    assert await old.send(b"as ever")
    assert await (await client.producer(f"{TOPIC}-new")).send(b"on the second try")


@played(
    ledger=LedgerSettings(
        segment_bytes=64 * 1024, checkpoint_bytes=256 * 1024, ledger_age_ms_min=0
    ),
    capacity_bytes=256 * 1024,
)
async def test_consumers_go_on_while_publishes_are_refused(world: World) -> None:
    client, reader = await world.connect(), await world.connect()
    producers = [await client.producer(f"{TOPIC}-{index}") for index in range(3)]
    consumers = [await reader.subscribe(p.topic, "s", queue_size=10) for p in producers]
    answers = await asyncio.gather(
        *[p.send_nowait(b"x" * 1_000) for _ in range(100) for p in producers],
        return_exceptions=True,
    )
    stored = [answers[index::3] for index in range(3)]
    assert any(isinstance(answer, RefusedError) for answer in answers)
    for consumer, of_topic in zip(consumers, stored, strict=True):
        positions = [answer for answer in of_topic if not isinstance(answer, BaseException)]
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
