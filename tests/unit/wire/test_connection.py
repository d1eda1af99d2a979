from __future__ import annotations

import pytest

from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.connection import TRANSITIONS, Connection, ConnectionState, peer_of
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import CommandConnect


def open_connection() -> Connection:
    connection = Connection()
    connection.receive(CommandType.CONNECT)
    return connection


@pytest.mark.parametrize("kind", [kind for kind in CommandType if kind != CommandType.CONNECT])
def test_only_connect_comes_first(kind: CommandType) -> None:
    connection = Connection()
    with pytest.raises(RemoteProtocolError, match=kind.name):
        connection.receive(kind)
    assert connection.state is ConnectionState.CLOSED


@pytest.mark.parametrize("kind", list(CommandType))
def test_once_open_every_command_of_a_client_but_connect(kind: CommandType) -> None:
    connection = open_connection()
    if kind in COMMANDS and kind not in (CommandType.CONNECT, CommandType.AUTH_RESPONSE):
        connection.receive(kind)
        assert connection.state is ConnectionState.CONNECTED
    else:
        with pytest.raises(RemoteProtocolError):
            connection.receive(kind)
        assert connection.state is ConnectionState.CLOSED


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (CommandType.CONNECT, "already open"),
        (CommandType.MESSAGE, "only brokers send"),
    ],
)
def test_the_error_says_why(kind: CommandType, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        open_connection().receive(kind)


def test_closed_is_for_good() -> None:
    connection = open_connection()
    connection.close()
    connection.close()
    for kind in (CommandType.CONNECT, CommandType.PING):
        with pytest.raises(RemoteProtocolError, match="closed"):
            connection.receive(kind)


def test_every_state_has_a_row() -> None:
    assert set(TRANSITIONS) == set(ConnectionState)


@pytest.mark.parametrize(
    ("version", "spoken"), [(-5, 0), (0, 0), (15, 15), (21, 21), (22, 21), (2**31 - 1, 21)]
)
def test_the_lower_version_is_spoken(version: int, spoken: int) -> None:
    assert peer_of(CommandConnect(client_version="c", protocol_version=version)).version == spoken


def test_what_each_version_understands() -> None:
    peers = [
        peer_of(CommandConnect(client_version="c", protocol_version=version))
        for version in range(22)
    ]
    first = {
        "knows_ping": 1,
        "knows_close": 5,
        "knows_checksums": 11,
        "knows_active_consumer_change": 12,
    }
    for name, version in first.items():
        assert [getattr(peer, name) for peer in peers] == [v >= version for v in range(22)]


@pytest.mark.parametrize(
    ("version", "flag", "reads"), [(18, True, True), (17, True, False), (20, False, False)]
)
def test_broker_entry_metadata_needs_version_and_flag(
    version: int, flag: bool, reads: bool
) -> None:
    connect = CommandConnect(client_version="c", protocol_version=version)
    connect.feature_flags.supports_broker_entry_metadata = flag
    assert peer_of(connect).reads_broker_entry_metadata is reads
