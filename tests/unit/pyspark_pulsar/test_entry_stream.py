from __future__ import annotations

import pytest

from headgate.base.positions import Position as Place
from headgate.wire import encode, replies
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.messages import BaseCommand
from pyspark_pulsar.access import Access
from pyspark_pulsar.commands import StoredEntry
from pyspark_pulsar.entry_stream import PERMITS, EntryStream
from pyspark_pulsar.errors import (
    AccessError,
    PulsarSourceError,
    ReadTimeoutError,
    RefusedReadError,
    TopicNotFoundError,
)
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.options import Connection
from pyspark_pulsar.read_settings import ReadSettings
from tests.unit.pyspark_pulsar.fake_broker import (
    HERE,
    Answer,
    FakeBroker,
    FakePeer,
    entries,
)

T = "persistent://public/default/t"
CONNECTION = Connection("pulsar://b", "http://h:2", 2_000, 1_000, Access(token="s3cret"))
SETTINGS = ReadSettings(CONNECTION, None, None, True, None, 5_000)
NO_ANSWER: Answer = lambda _peer, _command: []  # noqa: E731


def stream(
    broker: FakeBroker,
    begin: Position | None = None,
    *,
    url: str = "pulsar://b",
    permits: int | None = None,
) -> EntryStream:
    connection = Connection(url, "http://h:2", 2_000, 1_000, CONNECTION.access)
    settings = ReadSettings(connection, None, None, True, permits, 5_000)
    return EntryStream(
        T,
        begin or earliest(T),
        settings,
        connect=broker.dial,
        monotonic=broker.clock,
        sleep=broker.clock.sleep,
    )


def read_all(reading: EntryStream, messages: int = 1) -> list[StoredEntry]:
    found = []
    while (entry := reading.next_entry(2.0)) is not None:
        found.append(entry)
        reading.taken(messages)
    return found


def starts(broker: FakeBroker) -> list[tuple[int, int]]:
    """Where the readers began."""
    found = []
    for peer in broker.peers:
        for command in peer.sent:
            if command.type == CommandType.SUBSCRIBE:
                start = command.subscribe.start_message_id
                found.append((start.ledgerId, start.entryId))
    return found


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_all_entries_come_in_order(size: int) -> None:
    stored = entries(300, 0, 2, 2_000)
    broker = FakeBroker(stored, bytes_per_receive=size)
    reading = stream(broker)
    assert read_all(reading) == stored
    assert len(broker.peers) == 1
    broker.add(StoredEntry(999, 0, b"later"))
    assert reading.next_entry(1.0) == (999, 0, b"later")
    assert reading.last_failure == ""


@pytest.mark.parametrize(
    ("begin", "start", "first"),
    [
        (Position(-1, -1), ((1 << 64) - 1, (1 << 64) - 1), (7, 0)),
        (Position(7, -1), (7, 0), (7, 0)),
        (Position(7, 1), (7, 2), (7, 2)),
        (Position(7, 1, -1, 2), (7, 1), (7, 1)),
        (Position(7, 0, -1, 0), (7, 0), (7, 0)),
        (Position(7, 4), (7, 5), (107, 0)),
    ],
)
@pytest.mark.parametrize("is_exact", [True, False])
def test_where_a_reader_begins(
    begin: Position, start: tuple[int, int], first: tuple[int, int], is_exact: bool
) -> None:
    """A broker that sends earlier entries as well makes no difference."""
    broker = FakeBroker(entries(5, 5))
    if not is_exact:

        def subscribe(peer: FakePeer, command: BaseCommand) -> list[bytes]:
            peer.begin(-1, -1)
            return [replies.success(command.subscribe.request_id)]

        broker.answers[CommandType.SUBSCRIBE] = subscribe
    found = read_all(stream(broker, begin, permits=2))
    assert starts(broker) == [start]
    assert found == [each for each in broker.stored if each[:2] >= first]


def test_a_reader_is_opened_by_connect_lookup_subscribe_flow() -> None:
    broker = FakeBroker(entries(1))
    reading = stream(broker)
    reading.close()
    (peer,) = broker.peers
    assert peer.address == HERE
    assert peer.types() == [
        CommandType.CONNECT,
        CommandType.LOOKUP,
        CommandType.SUBSCRIBE,
        CommandType.FLOW,
        CommandType.CLOSE_CONSUMER,
    ]
    assert peer.sent[1].lookupTopic.topic == peer.sent[2].subscribe.topic == T
    assert peer.sent[3].flow.messagePermits == PERMITS


def end(peer: FakePeer) -> None:
    peer.ended = True


def close_consumer(peer: FakePeer) -> None:
    peer.inbox += replies.close_consumer(0)


def send_garbage(peer: FakePeer) -> None:
    peer.inbox += b"HTTP/1.1 400 Bad Request\r\n\r\n"


def claim_much(peer: FakePeer) -> None:
    peer.inbox += b"\x70\0\0\0\0\0\0\x10"


@pytest.mark.parametrize("trouble", [end, close_consumer, send_garbage, claim_much])
@pytest.mark.parametrize("given", [0, 1, 3, 5])
def test_after_trouble_it_goes_on_behind_the_last_entry(trouble: Answer, given: int) -> None:
    stored = entries(3, 4)
    broker = FakeBroker(stored[:given])
    reading = stream(broker)
    found = [reading.next_entry(1.0) for _ in range(given)]
    broker.stored = stored
    trouble(broker.peers[0])
    found += read_all(reading)
    assert found == stored
    assert reading.last_failure
    first, second = broker.peers
    assert first.closed
    assert second.types()[:2] == [CommandType.CONNECT, CommandType.LOOKUP]
    if given:
        ledger_id, entry_id = stored[given - 1][:2]
        assert starts(broker)[1] == (ledger_id, entry_id + 1)


def test_what_was_buffered_before_an_end_comes_once() -> None:
    """The end shows only behind what came before it."""
    stored = entries(10)
    broker = FakeBroker(stored, bytes_per_receive=70)
    reading = stream(broker)
    found = [reading.next_entry(1.0) for _ in range(4)]
    del broker.peers[0].inbox[5:]  # lost on the way
    broker.peers[0].ended = True
    found += read_all(reading)
    assert found == stored
    assert len(broker.peers) == 2


def test_an_entry_that_comes_twice_is_given_once() -> None:
    stored = entries(6)
    broker = FakeBroker([each for each in stored for _ in range(3)])
    assert read_all(stream(broker)) == stored


def test_entries_are_asked_for_again() -> None:
    broker = FakeBroker(entries(6))
    reading = stream(broker, permits=2)
    first = [reading.next_entry(2.0) for _ in range(4)]
    assert reading.has_more()
    assert first[1] is not None
    reading.again(first[1][:2])
    assert read_all(reading) == broker.stored[2:]
    assert starts(broker)[1:] == [(first[1].ledger_id, first[1].entry_id + 1)]


def test_a_new_connection_has_all_its_permits() -> None:
    broker = FakeBroker(entries(100))
    reading = stream(broker, permits=100)
    for _ in range(40):
        assert reading.next_entry(2.0)
        reading.taken(1)
    end(broker.peers[0])
    broker.peers[0].inbox.clear()
    reading._lose("as a test wants it")
    for _ in range(49):
        assert reading.next_entry(2.0)
        reading.taken(1)
    flows = [each.flow.messagePermits for each in broker.peers[1].sent if each.HasField("flow")]
    assert flows == [100]


def test_connections_that_end_again_and_again_begin_a_second_apart() -> None:
    broker = FakeBroker(entries(1))
    broker.answers[CommandType.FLOW] = lambda peer, _: [replies.close_consumer(0)]
    reading = stream(broker)
    assert reading.next_entry(4.5) is None
    assert broker.clock() == pytest.approx(4.5)
    assert len(broker.peers) == 5


def test_a_command_that_cannot_be_sent_ends_the_connection() -> None:
    broker = FakeBroker(entries(6))
    reading = stream(broker, permits=4)
    found = [reading.next_entry(1.0) for _ in range(3)]
    broker.peers[0].breaks = True
    reading.taken(3)
    assert "broken pipe" in reading.last_failure
    assert reading.has_more()
    assert found + read_all(reading) == broker.stored


def test_nothing_comes_within_the_time() -> None:
    broker = FakeBroker()
    reading = stream(broker)
    for _ in range(3):
        before = broker.clock()
        assert reading.next_entry(0.4) is None
        assert broker.clock() - before == pytest.approx(0.4)
    assert reading.next_entry(0.0) is None
    later = StoredEntry(1, 2, b"x")
    broker.peers[0].after(0.3, lambda _: broker.add(later))
    assert reading.next_entry(0.4) == later


def test_a_flood_of_other_commands_does_not_pass_the_deadline() -> None:
    broker = FakeBroker(bytes_per_receive=20)
    reading = stream(broker)
    peer = broker.peers[0]
    noise = encode.ping() + replies.active_consumer_change(0, is_active=True)

    def drip(_: FakePeer) -> None:
        peer.inbox += noise
        peer.after(0.001, drip)

    drip(peer)
    assert reading.next_entry(0.5) is None
    assert broker.clock() == pytest.approx(0.5, abs=0.01)
    broker.answers[CommandType.GET_LAST_MESSAGE_ID] = NO_ANSWER
    assert reading.has_more()
    assert broker.clock() == pytest.approx(2.5, abs=0.02)


def test_permits_are_granted_for_what_was_taken() -> None:
    broker = FakeBroker(entries(10_000), counted=3)
    reading = stream(broker, permits=30)
    assert len(read_all(reading, messages=3)) == 10_000
    flows = [each.flow.messagePermits for each in broker.peers[0].sent if each.HasField("flow")]
    assert flows[0] == 30
    assert set(flows[1:-1]) == {15}
    acks = [each.ack.message_id[0] for each in broker.peers[0].sent if each.HasField("ack")]
    assert (acks[-1].ledgerId, acks[-1].entryId) == (7, 9_999)
    assert broker.clock() == 2.0  # of waiting behind the last entry


def test_an_entry_may_count_as_billions() -> None:
    broker = FakeBroker(entries(3), counted=(1 << 31) - 1)
    assert len(read_all(stream(broker), messages=(1 << 31) - 1)) == 3
    assert broker.clock() == 2.0


@pytest.mark.parametrize("counted", [2, 40])
def test_a_stall_heals(counted: int) -> None:
    """The broker counts more messages than the caller."""
    broker = FakeBroker(entries(500), counted=counted)
    reading = stream(broker, permits=100)
    found = []
    for _ in range(10_000):
        entry = reading.next_entry(0.1)
        if entry is not None:
            found.append(entry)
            reading.taken(1)
    assert found == broker.stored


def test_silence_grants_no_more_than_the_permits() -> None:
    broker = FakeBroker(entries(1))
    reading = stream(broker, permits=100)
    for _ in range(2):
        assert reading.next_entry(0.1)
        for _ in range(50):
            assert reading.next_entry(0.1) is None
        broker.add(StoredEntry(99, len(broker.stored), b""))
    granted = [each.flow.messagePermits for each in broker.peers[0].sent if each.HasField("flow")]
    assert sum(granted) == 300
    acked = [each.ack.message_id[0] for each in broker.peers[0].sent if each.HasField("ack")]
    assert [(each.ledgerId, each.entryId) for each in acked] == [(7, 0), (99, 1)]


def test_has_more() -> None:
    broker = FakeBroker(entries(2, 1))
    broker.answers[CommandType.FLOW] = NO_ANSWER
    reading = stream(broker)
    assert reading.has_more()
    broker.peers[0].permits = 1
    broker.peers[0].deliver()
    assert reading.has_more()  # an entry came before the answer
    assert reading.has_more()
    assert reading.next_entry(1.0) == (7, 0, b"0-0")
    broker.peers[0].permits = 2
    broker.peers[0].deliver()
    assert reading.next_entry(1.0) == (7, 1, b"0-1")
    assert reading.has_more()
    assert reading.next_entry(1.0) == (107, 0, b"1-0")
    assert not reading.has_more()
    assert broker.clock() == 0


@pytest.mark.parametrize(
    ("begin", "last", "batch_index", "has_more"),
    [
        (Position(-1, -1), Place(-1, -1), -1, False),
        (Position(-1, -1), Place(7, 0), -1, True),
        (Position(7, -1), Place(6, 5), -1, False),
        (Position(7, 2), Place(7, 2), -1, False),
        (Position(7, 2), Place(7, 2), 9, False),
        (Position(7, 2), Place(7, 3), 0, True),
        (Position(7, 2, -1, 8), Place(7, 2), 9, True),
        (Position(7, 2, -1, 9), Place(7, 2), 9, False),
        (Position(7, 2, -1, 9), Place(7, 2), -1, True),
    ],
)
def test_has_more_before_the_first_entry(
    begin: Position, last: Place, batch_index: int, has_more: bool
) -> None:
    broker = FakeBroker()
    broker.answers[CommandType.GET_LAST_MESSAGE_ID] = lambda _, command: [
        replies.last_message_id(command.getLastMessageId.request_id + 1, Place(99, 99)),
        replies.last_message_id(command.getLastMessageId.request_id, last, batch_index=batch_index),
    ]
    assert stream(broker, begin).has_more() is has_more


def test_a_broker_that_does_not_say_what_is_last() -> None:
    broker = FakeBroker()
    reading = stream(broker)
    broker.answers[CommandType.GET_LAST_MESSAGE_ID] = NO_ANSWER
    assert reading.has_more()
    assert broker.clock() == 2.0
    broker.answers[CommandType.GET_LAST_MESSAGE_ID] = lambda _, command: [
        replies.error(command.getLastMessageId.request_id, ServerError.METADATA_ERROR, "x")
    ]
    assert reading.has_more()
    assert broker.clock() == 2.0
    broker.answers[CommandType.GET_LAST_MESSAGE_ID] = lambda _, command: [replies.close_consumer(0)]
    assert reading.has_more()
    assert reading.has_more()
    del broker.answers[CommandType.GET_LAST_MESSAGE_ID]
    assert reading.next_entry(1.0) is None
    assert not reading.has_more()


def refuse(kind: CommandType, code: ServerError) -> Answer:
    def answer(_: FakePeer, command: BaseCommand) -> list[bytes]:
        text = "no, s3cret\nstack"
        if kind == CommandType.LOOKUP:
            return [replies.lookup_failed(command.lookupTopic.request_id, code, text)]
        number = command.subscribe.request_id if kind == CommandType.SUBSCRIBE else (1 << 64) - 1
        return [replies.error(number, code, text)]

    return answer


@pytest.mark.parametrize(
    ("code", "error", "why"),
    [
        (ServerError.AUTHENTICATION_ERROR, AccessError, "AuthenticationError: no, ***"),
        (ServerError.AUTHORIZATION_ERROR, AccessError, "AuthorizationError: no, ***"),
        (ServerError.TOPIC_NOT_FOUND, TopicNotFoundError, "TopicNotFound: no, ***"),
        (ServerError.INVALID_TOPIC_NAME, RefusedReadError, "InvalidTopicName: no, ***"),
        (ServerError.NOT_ALLOWED_ERROR, RefusedReadError, "NotAllowedError: no, ***"),
        (ServerError.UNSUPPORTED_VERSION_ERROR, RefusedReadError, "UnsupportedVersionError: no"),
    ],
)
@pytest.mark.parametrize("kind", [CommandType.CONNECT, CommandType.LOOKUP, CommandType.SUBSCRIBE])
@pytest.mark.parametrize("is_later", [False, True])
def test_permanent_errors_end_the_reading(
    kind: CommandType, code: ServerError, error: type[PulsarSourceError], why: str, is_later: bool
) -> None:
    broker = FakeBroker()
    reading = stream(broker) if is_later else None
    broker.answers[kind] = refuse(kind, code)
    if is_later:
        end(broker.peers[0])
    with pytest.raises(error) as caught:
        reading.next_entry(10.0) if reading else stream(broker)
    assert why in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "stack" not in str(caught.value)
    assert broker.clock() <= 1.0
    assert all(peer.closed for peer in broker.peers)


def test_the_texts_of_refusals() -> None:
    advice = "check the token in authParams and what it permits"
    for kind, what in (
        (CommandType.CONNECT, "the connection"),
        (CommandType.LOOKUP, f"access to {T}"),
    ):
        broker = FakeBroker()
        broker.answers[kind] = refuse(kind, ServerError.AUTHORIZATION_ERROR)
        with pytest.raises(AccessError) as caught:
            stream(broker)
        assert str(caught.value) == (
            f"pulsar://b refuses {what} (AuthorizationError: no, ***): {advice}"
        )


@pytest.mark.parametrize("kind", [CommandType.CONNECT, CommandType.LOOKUP, CommandType.SUBSCRIBE])
@pytest.mark.parametrize("code", [ServerError.SERVICE_NOT_READY, ServerError.CONSUMER_BUSY])
def test_other_errors_retry_each_second(kind: CommandType, code: ServerError) -> None:
    broker = FakeBroker(entries(2))
    failing = refuse(kind, code)

    def answer(peer: FakePeer, command: BaseCommand) -> list[bytes]:
        if len(broker.peers) <= 3:
            return list(failing(peer, command))
        del broker.answers[kind]
        return list(broker.answer(peer, command))

    broker.answers[kind] = answer
    reading = stream(broker)
    assert broker.clock() == 3.0
    assert read_all(reading) == broker.stored


@pytest.mark.parametrize("kind", [CommandType.CONNECT, CommandType.LOOKUP, CommandType.SUBSCRIBE])
def test_without_a_reader_it_ends_after_the_poll_timeout(kind: CommandType) -> None:
    broker = FakeBroker()
    broker.answers[kind] = NO_ANSWER
    with pytest.raises(ReadTimeoutError, match=r"within 5000 ms \(pollTimeoutMs\): .* in time"):
        stream(broker)
    assert broker.clock() <= 5.0
    assert all(peer.closed for peer in broker.peers)


def test_the_name_of_a_host_shows_no_secret() -> None:
    """A broker names hosts, and knows the token."""
    broker = FakeBroker(entries(1), unreachable={("s3cret", 1)})
    broker.answers[CommandType.LOOKUP] = lambda _, command: [
        replies.lookup_connect(command.lookupTopic.request_id, broker_url="pulsar://s3cret:1")
    ]
    with pytest.raises(ReadTimeoutError, match=r"\(pollTimeoutMs\): \*\*\*:1: refused$"):
        stream(broker)


def test_a_long_name_of_a_host_is_cut() -> None:
    broker = FakeBroker(entries(1), unreachable={("h" * 9_000, 1)})
    broker.answers[CommandType.LOOKUP] = lambda _, command: [
        replies.lookup_connect(
            command.lookupTopic.request_id, broker_url=f"pulsar://{'h' * 9_000}:1"
        )
    ]
    with pytest.raises(ReadTimeoutError, match=r"\(pollTimeoutMs\): h{500}$"):
        stream(broker)


def test_an_outage_in_the_middle_ends_after_the_poll_timeout() -> None:
    """The caller's time-outs are kept meanwhile, and its pauses are no part of the outage."""
    broker = FakeBroker(entries(1))
    reading = stream(broker)
    assert reading.next_entry(1.0)
    end(broker.peers[0])
    broker.unreachable.add(HERE)
    assert reading.next_entry(0.5) is None
    broker.clock.now_s = begin_s = 100.0
    broker.unreachable.clear()
    assert reading.next_entry(0.5) is None
    end(broker.peers[-1])
    reading.has_more()
    broker.clock.now_s = begin_s = 200.0
    broker.unreachable.add(HERE)
    with pytest.raises(ReadTimeoutError, match="refused"):
        _poll_in_vain(reading, broker)
    assert 4.0 <= broker.clock() - begin_s <= 5.0


def _poll_in_vain(reading: EntryStream, broker: FakeBroker) -> None:
    for _ in range(100):
        before = broker.clock()
        assert reading.next_entry(0.5) is None
        assert broker.clock() - before == pytest.approx(0.5)


def test_hosts_are_tried_in_turn() -> None:
    broker = FakeBroker(entries(1))
    a, c = ((name, 1) for name in "ac")
    broker.unreachable = {a, c}
    reading = stream(broker, url="pulsar://a:1,b,c:1")
    assert read_all(reading) == broker.stored
    assert broker.clock() == 2.0  # of waiting behind the last entry
    end(broker.peers[0])
    broker.unreachable = {a, HERE}
    later = StoredEntry(9, 9, b"")
    broker.stored = [*broker.stored, later]
    broker.unreachable.discard(c)
    assert reading.next_entry(1.0) == later
    assert broker.peers[1].address == c


def test_ping_and_challenges_are_answered_amid_entries() -> None:
    broker = FakeBroker(entries(3))
    reading = stream(broker)
    (peer,) = broker.peers
    peer.inbox[:0] = encode.ping() + replies.auth_challenge(
        "token", protocol_version=19, server_version="x"
    )
    assert read_all(reading) == broker.stored
    assert peer.types()[4:6] == [CommandType.PONG, CommandType.AUTH_RESPONSE]
    assert peer.sent[5].authResponse.response.auth_data == b"s3cret"


def test_closing_never_fails() -> None:
    broker = FakeBroker()
    reading = stream(broker)
    broker.peers[0].breaks = True
    reading.close()
    reading.close()
    assert broker.peers[0].closed
