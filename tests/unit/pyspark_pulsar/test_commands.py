"""The codec of headgate.wire reads what is written here, and writes what is read."""

from __future__ import annotations

import pytest

from headgate.wire import codes, replies
from headgate.wire.messages import BaseCommand
from pyspark_pulsar import commands
from pyspark_pulsar.commands import CommandType

WHOLE = (1 << 64) - 1


def read(frame: bytes) -> BaseCommand:
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == len(frame) - 8
    command = BaseCommand.FromString(frame[8:])
    assert command.IsInitialized()
    return command


def test_the_codes_are_those_of_the_protocol() -> None:
    for kind in CommandType:
        assert codes.CommandType(kind).name == kind.name
    for error in commands.ServerError:
        assert codes.ServerError(error).name.startswith(error.name)
    for code, name in enumerate(commands.ERROR_NAMES):
        assert codes.ServerError(code).name.replace("_", "") == name.upper()


def test_a_lookup() -> None:
    command = read(commands.lookup_frame("t", 5, is_authoritative=True))
    asked = command.lookupTopic
    assert command.type == codes.CommandType.LOOKUP
    assert (asked.topic, asked.request_id, asked.authoritative) == ("t", 5, True)


@pytest.mark.parametrize(
    ("start", "ids"), [((3, 4), (3, 4)), (commands.EARLIEST_ID, (WHOLE, WHOLE))]
)
def test_a_reader_leaves_no_subscription_and_creates_no_topic(
    start: tuple[int, int], ids: tuple[int, int]
) -> None:
    command = read(commands.subscribe_frame("t", "reader-1", 6, start))
    asked = command.subscribe
    assert command.type == codes.CommandType.SUBSCRIBE
    assert (asked.topic, asked.subscription, asked.request_id) == ("t", "reader-1", 6)
    assert (asked.subType, asked.consumer_id) == (codes.SubscriptionType.EXCLUSIVE, 0)
    assert not asked.durable
    assert not asked.force_topic_creation
    assert (asked.start_message_id.ledgerId, asked.start_message_id.entryId) == ids


def test_the_commands_of_a_consumer() -> None:
    flow = read(commands.flow_frame(commands.PERMITS_MAX)).flow
    assert (flow.consumer_id, flow.messagePermits) == (0, (1 << 31) - 1)
    ack = read(commands.ack_frame(3, 4)).ack
    assert (ack.consumer_id, ack.ack_type) == (0, codes.AckType.CUMULATIVE)
    assert [(each.ledgerId, each.entryId) for each in ack.message_id] == [(3, 4)]
    assert read(commands.last_message_id_frame(8)).getLastMessageId.request_id == 8
    assert read(commands.close_consumer_frame(9)).close_consumer.request_id == 9


def test_the_commands_of_a_connection() -> None:
    answer = read(commands.auth_response_frame("token", "t")).authResponse
    assert (answer.response.auth_method_name, answer.response.auth_data) == ("token", b"t")
    assert answer.protocol_version == 19
    assert read(commands.PING_FRAME).HasField("ping")
    assert read(commands.PONG_FRAME).HasField("pong")


def test_a_lookup_answer_has_the_address_of_the_kind_that_is_used() -> None:
    frame = replies.lookup_connect(
        5, broker_url="pulsar://a:1", broker_url_tls="pulsar+ssl://a:2", through_service_url=True
    )
    answer = commands.command_of(frame[8:]).lookup_response
    assert answer.request_id == 5
    plain = commands.lookup_answer(answer, is_tls=False)
    assert plain == ("pulsar://a:1", False, True, True)
    assert commands.lookup_answer(answer, is_tls=True).url == "pulsar+ssl://a:2"


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 400", b"\x08", b"\x72\xff", b"\xff" * 12])
def test_what_is_no_command(data: bytes) -> None:
    with pytest.raises(ValueError, match="no command"):
        commands.command_of(data)


def test_an_error_is_one_line() -> None:
    frame = replies.error(1, codes.ServerError.SERVICE_NOT_READY, "a\nb")
    error = commands.command_of(frame[8:]).error
    assert commands.error_text(error.error, error.message) == "ServiceNotReady: a"
    assert commands.error_text(99, b"\xff") == "error 99: \N{REPLACEMENT CHARACTER}"
    assert commands.error_text(-1, b"") == "error -1"
