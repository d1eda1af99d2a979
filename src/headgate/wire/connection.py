"""The state of a connection: which commands a peer may send now.

The server's side of a connection is a table. ``CONNECT`` comes first and once; then every command
of :mod:`headgate.wire.commands` is allowed, built or not (the latter are refused one by one, which
does not cost the client its connection). Anything that the table does not list is the peer's fault
and closes the connection.

    CONNECTING --CONNECT--> CONNECTED --any other command of a client--> CONNECTED
    every state --close() or an unlisted command--> CLOSED

Authentication will add a state between the first two, entered by a CONNECT whose credentials need
another step and left by AUTH_RESPONSE; that is two rows of the table.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import CommandConnect

PROTOCOL_VERSION_MAX = 21
"""The newest version of the protocol that Headgate speaks."""

CLIENT_VERSION_CHARACTERS_MAX = 256
"""What is kept of what a client calls itself: statistics repeat it for each producer."""


class ConnectionState(enum.Enum):
    """Where the server's side of a connection stands."""

    CONNECTING = "connecting"
    """Open, and nothing was said yet."""

    CONNECTED = "connected"
    CLOSED = "closed"
    """For good: nothing that still arrives is looked at."""


_NOT_WHEN_CONNECTED = frozenset((CommandType.CONNECT, CommandType.AUTH_RESPONSE))

TRANSITIONS: dict[ConnectionState, dict[int, ConnectionState]] = {
    ConnectionState.CONNECTING: {CommandType.CONNECT: ConnectionState.CONNECTED},
    ConnectionState.CONNECTED: {
        command: ConnectionState.CONNECTED
        for command in COMMANDS
        if command not in _NOT_WHEN_CONNECTED
    },
    ConnectionState.CLOSED: {},
}
"""State -> command that may arrive in it -> state after it. What is absent is an error."""


class Connection:
    """The state of one connection, server side."""

    __slots__ = ("_allowed", "_state")

    def __init__(self) -> None:
        self._state = ConnectionState.CONNECTING
        self._allowed = TRANSITIONS[self._state]

    @property
    def state(self) -> ConnectionState:
        """Where the connection stands."""
        return self._state

    def receive(self, command_type: int) -> None:
        """Note that a command of this type arrived; call it before acting on the command.

        Raises :class:`RemoteProtocolError`, and is closed from then on, if the command may not
        come now.
        """
        after = self._allowed.get(command_type)
        if after is None:
            before = self._state
            self.close()
            raise RemoteProtocolError(_why_not(before, command_type))
        if after is not self._state:
            self._enter(after)

    def close(self) -> None:
        """Nothing more will be accepted. Closing twice is no error."""
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
    return f"{name} arrived on a connection that is already open"


@dataclass(frozen=True, slots=True)
class Peer:
    """What the other side of a connection understands.

    One property for each thing that must not be sent to everybody.
    """

    version: int
    """The version that both sides speak, 0 to ``PROTOCOL_VERSION_MAX``."""

    client_version: str
    """What the client calls itself; for people only."""

    reads_broker_entry_metadata: bool
    """Whether entries may keep their broker entry metadata."""

    @property
    def knows_ping(self) -> bool:
        """May be sent PING."""
        return self.version >= 1

    @property
    def knows_close(self) -> bool:
        """May be sent CLOSE_PRODUCER and CLOSE_CONSUMER; otherwise close the connection."""
        return self.version >= 5

    @property
    def knows_checksums(self) -> bool:
        """May be sent entries with their checksum; otherwise strip it."""
        return self.version >= 11

    @property
    def knows_active_consumer_change(self) -> bool:
        """May be sent ACTIVE_CONSUMER_CHANGE."""
        return self.version >= 12


def peer_of(connect: CommandConnect) -> Peer:
    """What the sender of this CONNECT understands."""
    version = max(0, min(connect.protocol_version, PROTOCOL_VERSION_MAX))
    return Peer(
        version=version,
        client_version=connect.client_version[:CLIENT_VERSION_CHARACTERS_MAX],
        reads_broker_entry_metadata=(
            version >= 18 and connect.feature_flags.supports_broker_entry_metadata
        ),
    )
