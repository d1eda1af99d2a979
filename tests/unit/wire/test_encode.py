"""The hand-made encoders against the generated classes, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire import encode
from headgate.wire.codes import CommandType
from headgate.wire.frame import FrameDecoder, encode_frame, encode_frame_head
from headgate.wire.messages import BaseCommand

EDGES = (0, 1, 127, 128, 16383, 16384, 2**28 - 1, 2**28, 2**63 - 1, -1, -(2**63), 2**64 - 1)
ids = st.sampled_from(EDGES) | st.integers(-(2**63), 2**64 - 1)
counts = st.sampled_from((0, 1, 127, 128, 2**31 - 1)) | st.integers(0, 2**31 - 1)


def reference_receipt(producer: int, sequence: int, ledger: int, entry: int, highest: int) -> bytes:
    command = BaseCommand(type=CommandType.SEND_RECEIPT)
    receipt = command.send_receipt
    receipt.producer_id = producer % 2**64
    receipt.sequence_id = sequence % 2**64
    receipt.message_id.ledgerId = ledger % 2**64
    receipt.message_id.entryId = entry % 2**64
    if highest:
        receipt.highest_sequence_id = highest % 2**64
    return encode_frame(command)


@given(ids, ids, ids, ids, ids)
def test_send_receipt(producer: int, sequence: int, ledger: int, entry: int, highest: int) -> None:
    expected = reference_receipt(producer, sequence, ledger, entry, highest)
    assert encode.send_receipt(producer, sequence, ledger, entry, highest) == expected


@pytest.mark.parametrize("edge", EDGES)
def test_send_receipt_of_edges(edge: int) -> None:
    expected = reference_receipt(edge, edge, edge, edge, edge)
    assert encode.send_receipt(edge, edge, edge, edge, edge) == expected


@given(
    consumer=ids,
    ledger=ids,
    entry=ids,
    partition=st.just(-1) | counts,
    redelivery=counts,
    ack_set=st.just([]) | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40),
    epoch=st.just(-1) | st.integers(0, 2**63 - 1),
    body_size=st.integers(0, 6 * 2**20),
)
def test_message_frame_head(
    consumer: int,
    ledger: int,
    entry: int,
    partition: int,
    redelivery: int,
    ack_set: list[int],
    epoch: int,
    body_size: int,
) -> None:
    command = BaseCommand(type=CommandType.MESSAGE)
    message = command.message
    message.consumer_id = consumer % 2**64
    message.message_id.ledgerId = ledger % 2**64
    message.message_id.entryId = entry % 2**64
    if partition >= 0:
        message.message_id.partition = partition
    if redelivery:
        message.redelivery_count = redelivery
    message.ack_set.extend(ack_set)
    if epoch >= 0:
        message.consumer_epoch = epoch
    encoded = encode.message_frame_head(
        consumer, ledger, entry, partition, redelivery, ack_set, epoch, body_size
    )
    assert encoded == encode_frame_head(command, body_size)


def test_head_and_body_make_one_frame() -> None:
    decoder = FrameDecoder()
    decoder.feed(encode.message_frame_head(1, 2, 3, -1, 0, (), -1, 4) + b"body")
    frame = decoder.next_frame()
    assert frame is not None
    command, body = frame
    assert (command.message.consumer_id, command.message.message_id.entryId) == (1, 3)
    assert body == b"body"


def test_ping_and_pong() -> None:
    assert encode.ping() == bytes.fromhex("00000009 00000005 0812 920100")
    assert encode.pong() == bytes.fromhex("00000009 00000005 0813 9a0100")
