from __future__ import annotations

import socket
from pathlib import Path

import pytest

from headgate.wire import encode, replies
from headgate.wire.codes import CommandType, LookupResult
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand
from pyspark_pulsar import broker_connection
from pyspark_pulsar.access import NO_ACCESS, Access
from pyspark_pulsar.broker_connection import (
    PING_AFTER_S,
    REDIRECTS_MAX,
    Address,
    BrokerConnection,
    Dialer,
    TransientError,
)
from pyspark_pulsar.errors import AccessError, TokenUnavailableError
from pyspark_pulsar.options import Connection
from tests.unit.pyspark_pulsar.fake_broker import CONNECTED, HERE, Clock, FakeBroker, FakePeer

T = "persistent://public/default/t"
OTHER = Address("other", 6_650)


def dialer(broker: FakeBroker, access: Access = NO_ACCESS, url: str = "pulsar://b") -> Dialer:
    return Dialer(Connection(url, "http://h:2", 2_000, 1_000, access), broker.dial, broker.clock)


def opened(broker: FakeBroker, access: Access = NO_ACCESS) -> tuple[BrokerConnection, FakePeer]:
    connection = dialer(broker, access).to_topic(T, HERE)
    return connection, broker.peers[-1]


def found_at(target: str, *, is_redirect: bool = False, through_proxy: bool = False) -> bytes:
    """The begin of an answer to LOOKUP, whose request id is the first."""
    command = BaseCommand(type=CommandType.LOOKUP_RESPONSE)
    answer = command.lookupTopicResponse
    answer.request_id, answer.brokerServiceUrl = 1, target
    answer.response = LookupResult.REDIRECT if is_redirect else LookupResult.CONNECT
    answer.authoritative, answer.proxy_through_service_url = True, through_proxy
    return encode_frame(command)


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("pulsar://b", [HERE]),
        ("pulsar://b:1,c", [Address("b", 1), Address("c", 6_650)]),
        ("pulsar+ssl://b,[::1]:7", [Address("b", 6_651), Address("::1", 7)]),
    ],
)
def test_the_hosts_of_a_service_url(url: str, addresses: list[Address]) -> None:
    assert dialer(FakeBroker(), url=url).addresses == addresses
    assert str(Address("::1", 7)) == "[::1]:7"


def test_the_broker_that_was_asked_may_have_the_topic() -> None:
    broker = FakeBroker()
    connection, peer = opened(broker, Access(token="t"))
    assert broker.peers == [peer]
    assert not peer.closed
    hello = peer.sent[0].connect
    assert hello.auth_data == b"t"
    assert hello.feature_flags.supports_auth_refresh
    assert not peer.sent[1].lookupTopic.authoritative
    connection.close()
    assert peer.closed


def test_another_broker_has_the_topic() -> None:
    broker = FakeBroker()
    broker.answers[CommandType.LOOKUP] = lambda *_: [found_at("pulsar://other:6650")]
    connection, peer = opened(broker)
    assert connection.address == peer.address == OTHER
    assert peer.types() == [CommandType.CONNECT]
    assert not peer.closed
    assert broker.peers[0].closed


def test_a_redirect_is_followed_with_what_it_says() -> None:
    broker = FakeBroker()

    def lookup(peer: FakePeer, command: BaseCommand) -> list[bytes]:
        is_first = peer.address == HERE
        assert command.lookupTopic.authoritative is not is_first
        return [found_at("pulsar://other", is_redirect=is_first)]

    broker.answers[CommandType.LOOKUP] = lookup
    _, peer = opened(broker)
    assert [each.address for each in broker.peers] == [HERE, OTHER]
    assert not peer.closed


def test_redirects_have_a_bound() -> None:
    broker = FakeBroker()
    broker.answers[CommandType.LOOKUP] = lambda *_: [found_at("pulsar://b", is_redirect=True)]
    with pytest.raises(TransientError, match="more than 20 redirects"):
        opened(broker)
    assert len(broker.peers) == REDIRECTS_MAX + 1
    assert all(peer.closed for peer in broker.peers)


def test_a_proxy_leads_to_the_broker() -> None:
    broker = FakeBroker()
    broker.answers[CommandType.LOOKUP] = lambda *_: [
        found_at("pulsar://inner:7", through_proxy=True)
    ]
    _, peer = opened(broker)
    assert [each.address for each in broker.peers] == [HERE, HERE]
    assert peer.sent[0].connect.proxy_to_broker_url == "inner:7"
    assert broker.peers[0].closed
    assert not broker.peers[0].sent[0].connect.HasField("proxy_to_broker_url")


@pytest.mark.parametrize("target", ["", "pulsar://", "pulsar://b:port", "pulsar://[b"])
def test_an_answer_without_a_broker(target: str) -> None:
    broker = FakeBroker()
    broker.answers[CommandType.LOOKUP] = lambda *_: [found_at(target)]
    with pytest.raises(TransientError, match=f"b:6650 names no broker of {T}"):
        opened(broker)
    assert broker.peers[0].closed


def test_other_answers_are_passed_over() -> None:
    broker = FakeBroker()
    broker.answers[CommandType.LOOKUP] = lambda *_: [
        replies.success(1),
        replies.lookup_connect(99, broker_url="pulsar://other"),
        encode.ping(),
        found_at("pulsar://b"),
    ]
    connection, _ = opened(broker)
    assert connection.address == HERE


def test_a_flood_of_other_answers_has_a_bound() -> None:
    broker = FakeBroker(bytes_per_receive=30)

    def drip(peer: FakePeer) -> None:
        peer.inbox += replies.success(7)
        peer.after(0.01, drip)

    broker.answers[CommandType.CONNECT] = lambda peer, _: (drip(peer), [])[1]
    with pytest.raises(TransientError, match="b:6650 does not answer in time"):
        opened(broker)
    assert broker.clock() == pytest.approx(2.0, abs=0.02)


class Ticking(Clock):
    """Time passes by work, too."""

    def __call__(self) -> float:
        self.now_s += 0.001
        return self.now_s


def test_a_broker_that_floods_without_a_pause_has_a_bound() -> None:
    """Each look finds something, so nothing ever waits."""
    broker = FakeBroker(clock=Ticking())
    connection, peer = opened(broker)
    flood = encode.ping()

    def refill(_: FakePeer) -> None:
        peer.inbox += flood
        peer.events.append((0.0, refill))

    refill(peer)
    begin_s = broker.clock.now_s
    assert connection.next(begin_s + 1.0) is None
    assert broker.clock.now_s - begin_s < 1.1
    flood = replies.success(7)
    broker.answers[CommandType.LOOKUP] = lambda *_: []
    with pytest.raises(TransientError, match="does not answer in time"):
        connection.lookup(T, broker.clock.now_s + 1.0, is_authoritative=False, is_tls=False)
    assert broker.clock.now_s - begin_s < 2.2


def test_a_challenge_within_the_handshake_is_answered() -> None:
    broker = FakeBroker()
    challenge = replies.auth_challenge("token", protocol_version=19, server_version="x")
    broker.answers[CommandType.CONNECT] = lambda *_: [challenge]
    broker.answers[CommandType.AUTH_RESPONSE] = lambda *_: [CONNECTED]
    _, peer = opened(broker, Access(token="t"))
    assert peer.sent[1].authResponse.response.auth_data == b"t"


def test_a_challenge_is_answered_by_the_present_token(tmp_path: Path) -> None:
    """One that cannot be read, as while it is replaced, leaves the last one."""
    path = tmp_path / "token"
    path.write_text("first")
    broker = FakeBroker()
    connection, peer = opened(broker, Access(token_path=str(path)))
    challenge = replies.auth_challenge("token", protocol_version=19, server_version="x")
    for text in ("second", "", "third"):
        path.write_text(text)
        peer.inbox += challenge
        assert connection.next(broker.clock() + 1) is None
    data = [each.authResponse.response.auth_data for each in peer.sent if each.type == 37]
    assert data == [b"second", b"second", b"third"]


def test_a_token_that_cannot_be_read_opens_no_connection(tmp_path: Path) -> None:
    broker = FakeBroker()
    with pytest.raises(AccessError, match="cannot be read"):
        opened(broker, Access(token_path=str(tmp_path / "none")))
    assert broker.peers[0].closed


def test_an_issuer_that_is_away_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(_: Access) -> tuple[str, str]:
        raise TokenUnavailableError("the issuer is away")

    monkeypatch.setattr(Access, "presented", unavailable)
    with pytest.raises(TransientError, match="the issuer is away"):
        opened(FakeBroker())


def test_silence_is_asked_about_once_and_then_an_end() -> None:
    broker = FakeBroker()
    connection, peer = opened(broker)
    before = len(peer.sent)
    assert connection.next(broker.clock() + 1.5 * PING_AFTER_S) is None
    assert peer.types()[before:] == [CommandType.PING]
    peer.after(0.1, lambda _: peer.inbox.extend(encode.pong()))
    assert connection.next(broker.clock() + 0.9 * PING_AFTER_S) is None
    assert len(peer.sent) == before + 1
    begin_s = broker.clock()
    with pytest.raises(TransientError, match="b:6650 sent nothing for 30 s"):
        _poll_forever(connection, broker)
    assert broker.clock() - begin_s < 2 * PING_AFTER_S + 1
    assert peer.types()[before:] == [CommandType.PING, CommandType.PING]


def _poll_forever(connection: BrokerConnection, broker: FakeBroker) -> None:
    while True:
        connection.next(broker.clock() + 0.5)


def test_a_host_that_is_none_and_one_that_refuses() -> None:
    broker = FakeBroker(unreachable={HERE})
    with pytest.raises(TransientError, match="b:6650: refused"):
        opened(broker)
    real = Dialer(Connection("pulsar://b", "http://h:2", 2_000, 1_000))
    with pytest.raises(TransientError):
        real.open(Address("a..b" + "x" * 70, 1), real.monotonic() + 2.0)


def test_no_time_is_left_for_a_connection() -> None:
    broker = FakeBroker()
    with pytest.raises(TransientError, match="no connection in time"):
        dialer(broker).open(HERE, broker.clock())
    assert broker.peers == []


def test_the_connection_to_a_broker_has_no_delay() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
        with broker_connection.dial(address, 5.0) as peer:
            assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
