from __future__ import annotations

import pytest

from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.state_machine import TRANSITIONS, ConnectionState, ProtocolStateMachine


def open_connection() -> ProtocolStateMachine:
    connection = ProtocolStateMachine()
    connection.receive(CommandType.CONNECT)
    return connection


@pytest.mark.parametrize("kind", [kind for kind in CommandType if kind != CommandType.CONNECT])
def test_only_connect_comes_first(kind: CommandType) -> None:
    connection = ProtocolStateMachine()
    with pytest.raises(RemoteProtocolError, match=kind.name):
        connection.receive(kind)
    assert connection.state is ConnectionState.CLOSED


@pytest.mark.parametrize("kind", list(CommandType))
def test_once_open_every_command_of_a_client_but_connect(kind: CommandType) -> None:
    connection = open_connection()
    if kind in COMMANDS and kind != CommandType.CONNECT:
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


@pytest.mark.parametrize("kind", list(CommandType))
def test_no_command_while_credentials_are_checked(kind: CommandType) -> None:
    connection = open_connection()
    connection.await_authentication()
    assert connection.state is ConnectionState.AUTHENTICATING
    with pytest.raises(RemoteProtocolError):
        connection.receive(kind)
    assert connection.state is ConnectionState.CLOSED


def test_good_credentials_open_a_connection_that_has_not_ended() -> None:
    connection = open_connection()
    connection.await_authentication()
    connection.authenticated()
    connection.receive(CommandType.PING)
    connection.await_authentication()
    with pytest.raises(RemoteProtocolError, match="before the answer to CONNECT"):
        connection.receive(CommandType.PING)
    connection.authenticated()
    connection.await_authentication()
    assert connection.state is ConnectionState.CLOSED


def test_closed_is_for_good() -> None:
    connection = open_connection()
    connection.close()
    connection.close()
    for kind in (CommandType.CONNECT, CommandType.PING):
        with pytest.raises(RemoteProtocolError, match="closed"):
            connection.receive(kind)


def test_every_state_has_a_row() -> None:
    assert set(TRANSITIONS) == set(ConnectionState)
