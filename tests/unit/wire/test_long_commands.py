"""Commands above the bound: ids come in pieces that say the same together, the rest is refused."""

from __future__ import annotations

import random

import pytest

from headgate.base.positions import Position
from headgate.base.units import KIB
from headgate.wire import client
from headgate.wire.codes import AckType, CommandType
from headgate.wire.errors import CommandTooLongError, RemoteProtocolError
from headgate.wire.frame import FrameDecoder
from headgate.wire.long_commands import PIECE_BYTES, LongIds, beginning_of, is_of_ids, type_of
from headgate.wire.messages import BaseCommand
from headgate.wire.varint import varint

MANY = [Position(index // 50_000, index % 50_000) for index in range(60_000)]
FRAME_MAX = 6_000_000


def encoded(frame: bytes) -> memoryview:
    return memoryview(frame)[8:]


def wrapped(kind: int, inner: bytes) -> memoryview:
    head = bytes((8, kind)) + varint(kind << 3 | 2) + varint(len(inner))
    return memoryview(head + inner)


def pieces(command: memoryview) -> list[BaseCommand]:
    ids, found, is_last = LongIds(command), [], False
    while not is_last:
        piece, is_last = ids.piece(command)
        assert len(piece) <= 2 * PIECE_BYTES + KIB
        found.append(BaseCommand.FromString(piece))
    return found


def test_pieces_of_an_ack_are_the_whole() -> None:
    command = encoded(client.ack(7, MANY, request_id=99))
    found = pieces(command)
    assert len(found) > 20
    assert {(each.ack.consumer_id, each.ack.ack_type) for each in found} == {(7, 0)}
    ids = [(i.ledgerId, i.entryId) for each in found for i in each.ack.message_id]
    assert ids == [tuple(position) for position in MANY]
    assert [each.ack.request_id for each in found if each.ack.HasField("request_id")] == [99]
    assert found[-1].ack.HasField("request_id")


def test_pieces_of_a_redelivery_are_the_whole() -> None:
    found = pieces(encoded(client.redeliver(7, MANY, consumer_epoch=3)))
    told = [each.redeliverUnacknowledgedMessages for each in found]
    assert all(each.message_ids for each in told)
    assert sum(len(each.message_ids) for each in told) == len(MANY)
    assert {each.consumer_id for each in told} == {7}
    assert told[-1].consumer_epoch == 3


def test_ids_with_long_sets() -> None:
    """Sizes that take more than one byte."""
    found = pieces(encoded(client.ack(7, MANY[:3_000], ack_set=[-1] * 40)))
    ids = [i for each in found for i in each.ack.message_id]
    assert len(ids) == 3_000
    assert all(list(i.ack_set) == [-1] * 40 for i in ids)


ID = b"\x1a\x04\x08\x01\x10\x01"


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (b"\x08\x01\x10\x00" + b"\x1a\x00" * 100, "a message id of 0 bytes"),
        (b"\x08\x01\x10\x00" + ID * 9_000 + b"\x40\x01" + ID * 9_000, "do not follow each other"),
        (b"\x08\x01\x10\x00\x42\x03abc" + ID, "not because of its message ids"),
        (b"\x08\x01\x10\x00" * 9 + ID, "not because of its message ids"),
        (b"\x08" + b"\xff" * 20 + ID, "more than 64 bits"),
        (b"\x08\x01\x10\x00" + ID + b"\x1a\xff\x7f\x08", "longer than its command"),
        (b"\x08\x01\x10\x00" + ID + b"\x1a\xff\xff\x7f", "a message id of 2097151 bytes"),
        (b"\x08\x01\x10\x00", "not because of its message ids"),
        (b"\x08\x01\x10\x00" + ID + b"\x1a", "longer than its command"),
    ],
)
def test_what_is_not_ids(inner: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        pieces(wrapped(10, inner))


def test_a_length_that_is_not_the_commands() -> None:
    command = bytes(wrapped(10, b"\x08\x01\x10\x00" + ID))
    with pytest.raises(RemoteProtocolError, match="not because of its message ids"):
        LongIds(memoryview(command + b"\x08\x05"))


def test_types_that_may_be_long() -> None:
    assert type_of(encoded(client.ping())) == CommandType.PING
    assert type_of(b"\x10\x01") == type_of(b"\x08") == type_of(b"\x08\x80\x01") == 0
    assert [kind for kind in CommandType if is_of_ids(kind)] == [
        CommandType.ACK,
        CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES,
    ]


def test_the_beginning_of_a_command_is_enough_to_refuse_it() -> None:
    command = BaseCommand(type=CommandType.PRODUCER)
    asked = command.producer
    asked.topic, asked.producer_id, asked.request_id = "t", 5, 6
    for _ in range(10_000):
        asked.metadata.add(key="k", value="")
    asked.schema.name, asked.schema.type = "s", 0
    asked.schema.schema_data = b"x" * 100_000
    kept = beginning_of(memoryview(command.SerializeToString()))
    assert kept is not None
    assert (kept.producer.request_id, kept.producer.topic) == (6, "t")
    assert len(kept.SerializePartialToString()) < 2_000


def test_beginnings_of_anything() -> None:
    """Whatever it is, nothing but a command or None comes of it."""
    chance = random.Random(5)
    for _ in range(2_000):
        inner = chance.randbytes(chance.randrange(40))
        kept = beginning_of(wrapped(chance.randrange(1, 90), inner))
        assert kept is None or len(kept.SerializePartialToString()) < 2_000
    assert beginning_of(memoryview(b"\x10\x02")) is None
    assert beginning_of(memoryview(b"\x08\x05\x12\x00")) is None


# Through the decoder ----------------------------------------------------------------------------


def decoder() -> FrameDecoder:
    return FrameDecoder(FRAME_MAX, 64 * KIB)


@pytest.mark.parametrize("size", [FRAME_MAX, 3_000])
def test_a_long_ack_is_handed_out_in_parts_between_its_neighbours(size: int) -> None:
    made, found = decoder(), []
    stream = client.ping() + client.ack(7, MANY, request_id=99) + client.pong() + client.ping()
    for start in range(0, len(stream), size):
        made.feed(stream[start : start + size])
        while (frame := made.next_frame()) is not None:
            found.append((frame[0].type, made.is_partial))
    kinds = [kind for kind, _ in found]
    assert kinds[0] == kinds[-1] == CommandType.PING
    assert kinds[-2] == CommandType.PONG
    acks = found[1:-2]
    assert len(acks) > 20
    assert [is_partial for _, is_partial in acks] == [True] * (len(acks) - 1) + [False]


def test_a_long_command_is_refused_and_the_next_is_read() -> None:
    made = decoder()
    command = BaseCommand(type=CommandType.PRODUCER)
    asked = command.producer
    asked.topic, asked.producer_id, asked.request_id = "t", 5, 6
    asked.producer_name = "x" * 70_000
    whole = command.SerializeToString()
    made.feed((len(whole) + 4).to_bytes(4) + len(whole).to_bytes(4) + whole + client.ping())
    with pytest.raises(CommandTooLongError, match="headgateMaxCommandBytes=65536") as refusal:
        made.next_frame()
    assert refusal.value.command.producer.request_id == 6
    frame = made.next_frame()
    assert frame is not None
    assert frame[0].type == CommandType.PING


def test_as_many_properties_as_are_reported_are_allowed() -> None:
    made = decoder()
    properties = dict.fromkeys(map(str, range(1_000)), "v")
    made.feed(client.subscribe(6, 5, "t", "s", properties=properties))
    frame = made.next_frame()
    assert frame is not None
    assert len(frame[0].subscribe.subscription_properties) == 1_000
    made.feed(client.subscribe(6, 5, "t", "s", properties={**properties, "one": "more"}))
    with pytest.raises(CommandTooLongError):
        made.next_frame()


def test_many_parts_are_refused_and_the_next_is_read() -> None:
    made = decoder()
    properties = dict.fromkeys(map(str, range(1_500)), "v")
    made.feed(client.subscribe(6, 5, "t", "s", properties=properties))
    made.feed(client.ping())
    with pytest.raises(CommandTooLongError, match="SUBSCRIBE of more than 1000 parts"):
        made.next_frame()
    assert made.next_frame() is not None


@pytest.mark.parametrize(
    "start",
    [
        b"\x08\x06" + b"\x00" * 10,  # a SEND
        b"\x10\x06" + b"\x00" * 10,  # it does not begin with its type
        b"\x08\x80\x01" + b"\x00" * 10,
    ],
)
def test_what_nobody_can_be_reported_of_is_refused_at_its_beginning(start: bytes) -> None:
    made = decoder()
    made.feed((100_004).to_bytes(4) + (100_000).to_bytes(4) + start)
    with pytest.raises(RemoteProtocolError, match="100000 bytes: headgateMaxCommandBytes=65536"):
        made.next_frame()


def test_a_long_command_with_a_payload() -> None:
    made = decoder()
    ack = bytes(encoded(client.ack(7, MANY)))
    made.feed((len(ack) + 9).to_bytes(4) + len(ack).to_bytes(4) + ack + b"body!")
    with pytest.raises(RemoteProtocolError):
        made.next_frame()


def test_a_long_cumulative_ack() -> None:
    made = decoder()
    made.feed(client.ack(7, MANY, AckType.CUMULATIVE))
    with pytest.raises(RemoteProtocolError, match="cumulative"):
        made.next_frame()


def test_a_long_ack_without_its_consumer() -> None:
    made = decoder()
    command = bytes(wrapped(10, b"\x10\x00" + ID * 20_000))
    made.feed((len(command) + 4).to_bytes(4) + len(command).to_bytes(4) + command)
    with pytest.raises(RemoteProtocolError, match="lacks required fields"):
        made.next_frame()


def test_what_is_missing_is_not_listed() -> None:
    """In a command of 60 KB the list would have millions of characters, in the log as well."""
    made = decoder()
    command = bytes(wrapped(5, b"\x0a\x01t\x10\x01\x18\x01" + b"\x32\x00" * 30_000))
    made.feed((len(command) + 4).to_bytes(4) + len(command).to_bytes(4) + command)
    with pytest.raises(RemoteProtocolError) as error:
        made.next_frame()
    assert len(str(error.value)) < 300
