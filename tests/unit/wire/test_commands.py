from __future__ import annotations

import pytest

from headgate.wire import client
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.commands import COMMANDS, refuse
from headgate.wire.frame import FIELD_OF_TYPE, FrameDecoder
from headgate.wire.messages import BaseCommand

BROKER_ONLY = {
    name
    for name in CommandType.__members__
    if name.endswith(("_RESPONSE", "_SUCCESS", "_UPDATE", "_CHANGE", "_CHALLENGE"))
} - {"AUTH_RESPONSE"} | {
    "CONNECTED",
    "SUCCESS",
    "ERROR",
    "MESSAGE",
    "SEND_RECEIPT",
    "SEND_ERROR",
    "REACHED_END_OF_TOPIC",
    "TOPIC_MIGRATED",
}


def decode(frame: bytes) -> BaseCommand:
    decoder = FrameDecoder()
    decoder.feed(frame)
    decoded = decoder.next_frame()
    assert decoded is not None
    return decoded[0]


def minimal(kind: CommandType) -> BaseCommand:
    """A command of ``kind`` in which every required field has a value."""
    command = BaseCommand(type=kind)
    inner = getattr(command, FIELD_OF_TYPE[kind])
    inner.SetInParent()
    for field in inner.DESCRIPTOR.fields:
        if field.is_required and field.message_type is None:
            setattr(inner, field.name, "x" if field.type == field.TYPE_STRING else 1)
    return command


def test_each_command_is_either_in_the_table_or_the_broker_s() -> None:
    assert {CommandType[name] for name in BROKER_ONLY}.isdisjoint(COMMANDS)
    assert len(COMMANDS) + len(BROKER_ONLY) == len(CommandType)


def test_rows_are_consistent() -> None:
    for number, facts in COMMANDS.items():
        assert facts.type == number
        assert facts.name == CommandType(number).name
        assert "." in facts.operation
        inner = getattr(BaseCommand(), facts.field)
        required = {field.name for field in inner.DESCRIPTOR.fields if field.is_required}
        assert facts.has_request_id == ("request_id" in required)


@pytest.mark.parametrize("kind", [facts.type for facts in COMMANDS.values()])
def test_refusal_reaches_whoever_waits(kind: CommandType) -> None:
    command = minimal(kind)
    facts = COMMANDS[kind]
    frame = refuse(command, ServerError.NOT_ALLOWED_ERROR, "no")
    if facts.key in (None, "request_id?") and kind != CommandType.CONNECT:
        assert frame is None
        return
    assert frame is not None
    reply = decode(frame)
    assert reply.type == facts.reply
    answer = getattr(reply, FIELD_OF_TYPE[facts.reply])
    if facts.key is not None:
        assert getattr(answer, facts.key) == 1
    codes = [value for field, value in answer.ListFields() if field.name in ("error", "error_code")]
    texts = [
        value for field, value in answer.ListFields() if field.name in ("message", "error_message")
    ]
    assert codes == [ServerError.NOT_ALLOWED_ERROR]
    assert texts == ["no"]


def test_refusals_with_more_than_a_key() -> None:
    sent = refuse(decode(client.send(4, 5, b"x")), ServerError.CHECKSUM_ERROR, "no")
    assert sent is not None
    assert decode(sent).send_error.producer_id == 4
    acked = refuse(decode(client.ack(4, [], request_id=5)), ServerError.UNKNOWN_ERROR, "no")
    assert acked is not None
    assert (decode(acked).ackResponse.consumer_id, decode(acked).ackResponse.request_id) == (4, 5)
    looked = refuse(decode(client.lookup(4, "t")), ServerError.METADATA_ERROR, "no")
    assert looked is not None
    assert decode(looked).lookupTopicResponse.response == 2


def test_a_broker_s_command_cannot_be_refused() -> None:
    assert refuse(minimal(CommandType.SUCCESS), ServerError.UNKNOWN_ERROR, "no") is None
