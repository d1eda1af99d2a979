"""An entry arrives as its producer made it, byte for byte, whatever its metadata say."""

from __future__ import annotations

import struct

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.testing import World
from headgate.wire.codes import SubscriptionType
from headgate.wire.entry import LENGTH, crc32c
from headgate.wire.messages import MessageMetadata
from headgate.wire.varint import varint
from tests.unit.broker.playing import TOPIC

KNOWN = {field.number for field in MessageMetadata.DESCRIPTOR.fields}


@st.composite
def unknown_fields(draw: st.DrawFn) -> bytes:
    """A field that no version of the protocol has yet, of any wire type."""
    number = draw(st.integers(1, (1 << 29) - 1).filter(lambda n: n not in KNOWN))
    kind = draw(st.sampled_from((0, 1, 2, 5)))
    value = {
        0: lambda: varint(draw(st.integers(0, (1 << 64) - 1))),
        1: lambda: draw(st.binary(min_size=8, max_size=8)),
        2: lambda: (lambda text: varint(len(text)) + text)(draw(st.binary(max_size=60))),
        5: lambda: draw(st.binary(min_size=4, max_size=4)),
    }[kind]()
    return varint(number << 3 | kind) + value


@st.composite
def metadata_bytes(draw: st.DrawFn) -> bytes:
    """Metadata of one message with unknown fields between the known ones, in any order."""
    known = MessageMetadata(producer_name="p", sequence_id=draw(st.integers(0, (1 << 64) - 1)),
                            publish_time=draw(st.integers(0, 1 << 40)))  # fmt: skip
    optional = MessageMetadata()
    if draw(st.booleans()):
        optional.partition_key = draw(st.text(max_size=20))
        optional.ordering_key = draw(st.binary(max_size=20))
    if draw(st.booleans()):
        optional.properties.add(key=draw(st.text(max_size=9)), value=draw(st.text(max_size=9)))
    if draw(st.booleans()):
        key = optional.encryption_keys.add(key="k", value=draw(st.binary(max_size=40)))
        key.metadata.add(key="version", value=draw(st.text(max_size=9)))
        optional.encryption_algo = draw(st.text(max_size=9))
        optional.encryption_param = draw(st.binary(max_size=20))
    if draw(st.booleans()):
        optional.uuid = draw(st.text(max_size=20))
        optional.num_chunks_from_msg, optional.chunk_id = 3, draw(st.integers(0, 2))
        optional.total_chunk_msg_size = 99
    parts = [
        known.SerializeToString(),
        optional.SerializePartialToString(),
        *draw(st.lists(unknown_fields(), max_size=5)),
    ]
    return b"".join(draw(st.permutations(parts)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(metadata_bytes(), st.binary(max_size=100)), min_size=1, max_size=8))
def test_any_metadata_arrive_unchanged(parts: list[tuple[bytes, bytes]]) -> None:
    bodies = []
    for metadata, payload in parts:
        covered = LENGTH.pack(len(metadata)) + metadata + payload
        bodies.append(struct.pack(">HI", 0x0E01, crc32c(covered)) + covered)

    async def story(world: World) -> None:
        await world.start()
        client = await world.connect()
        producer = await client.producer(TOPIC)
        live = await client.subscribe(TOPIC, "live", kind=SubscriptionType.SHARED)
        await client.subscribe(TOPIC, "stored", queue_size=0)
        for number, body in enumerate(bodies):
            await producer.send_entry_nowait(number, body)
        assert [(await live.receive()).body for _ in bodies] == bodies
        world.crash()
        await world.start()
        stored = await (await world.connect()).subscribe(TOPIC, "stored")
        assert [(await stored.receive()).body for _ in bodies] == bodies

    with World(1) as world:
        world.run(story(world))
