"""The protocol's state machine: which commands a client may send now.

The server's side is a table. ``CONNECT`` comes first and once. After it the client may send every
command of :mod:`headgate.wire.commands`; the broker refuses those that are not built one by one and
keeps the connection. A command that the table does not list is the client's fault and closes the
connection.

    CONNECTING --CONNECT--> CONNECTED --any other command of a client--> CONNECTED
    CONNECTED --await_authentication()--> AUTHENTICATING --authenticated()--> CONNECTED
    every state --close() or an unlisted command--> CLOSED

A CONNECT whose credentials take longer to check keeps the connection in AUTHENTICATING. A client
waits for CONNECTED, so any command in this state is its fault.
"""

from __future__ import annotations

import enum

from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.errors import RemoteProtocolError


class ConnectionState(enum.Enum):
    """The state of the protocol on one connection, server side."""

    CONNECTING = "connecting"
    """Open, and no command has arrived."""

    AUTHENTICATING = "authenticating"
    """CONNECT came, and the broker still checks its credentials."""

    CONNECTED = "connected"
    CLOSED = "closed"
    """Final: the broker ignores what still arrives."""


TRANSITIONS: dict[ConnectionState, dict[int, ConnectionState]] = {
    ConnectionState.CONNECTING: {CommandType.CONNECT: ConnectionState.CONNECTED},
    ConnectionState.CONNECTED: {
        command: ConnectionState.CONNECTED for command in COMMANDS if command != CommandType.CONNECT
    },
    ConnectionState.AUTHENTICATING: {},
    ConnectionState.CLOSED: {},
}
"""State -> command allowed in it -> state after the command. Any other command is an error."""


class ProtocolStateMachine:
    """The protocol's state on one connection, server side."""

    __slots__ = ("_allowed", "_state")

    def __init__(self) -> None:
        self._state = ConnectionState.CONNECTING
        self._allowed = TRANSITIONS[self._state]

    @property
    def state(self) -> ConnectionState:
        """The present state."""
        return self._state

    def receive(self, command_type: int) -> None:
        """Move to the state after a command of this type; call it before acting on the command.

        Raises :class:`RemoteProtocolError` if the state does not allow the command; the state is
        then CLOSED.
        """
        after = self._allowed.get(command_type)
        if after is None:
            before = self._state
            self.close()
            raise RemoteProtocolError(_why_not(before, command_type))
        if after is not self._state:
            self._enter(after)

    def await_authentication(self) -> None:
        """The credentials of CONNECT are not checked yet: allow no command."""
        if self._state is ConnectionState.CONNECTED:
            self._enter(ConnectionState.AUTHENTICATING)

    def authenticated(self) -> None:
        """The credentials are good: allow commands, unless the connection ended meanwhile."""
        if self._state is ConnectionState.AUTHENTICATING:
            self._enter(ConnectionState.CONNECTED)

    def close(self) -> None:
        """Allow no further command. A second call does nothing."""
        self._enter(ConnectionState.CLOSED)

    def _enter(self, state: ConnectionState) -> None:
        self._state = state
        self._allowed = TRANSITIONS[state]


def _why_not(state: ConnectionState, command_type: int) -> str:
    name = CommandType(command_type).name
    if state is ConnectionState.CLOSED:
        return f"{name} arrived on a closed connection"
    if command_type not in COMMANDS:
        return f"{name} is a command that only brokers send"
    if state is ConnectionState.CONNECTING:
        return f"{name} arrived before CONNECT"
    if state is ConnectionState.AUTHENTICATING:
        return f"{name} arrived before the answer to CONNECT"
    return f"{name} arrived on a connection that is already open"
