"""One client's connection, as its parts and the handlers of commands use it."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any, Protocol

from headgate.base.errors import HeadgateError
from headgate.base.identity import Identity
from headgate.broker.connection.address_counts import peer_network_of
from headgate.engine.consumer import Consumer, ConsumerPort
from headgate.engine.producer import Producer, ProducerPort
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.wire.messages import BaseCommand
from headgate.wire.peer import Peer


class Watcher(Protocol):
    """Something that tells the client of changes until it is ended."""

    def end(self) -> None:
        """Tell nothing more. A second call does nothing."""


class ClientConsumerPort(ConsumerPort, Protocol):
    """A connection as its commands and the engine use it for its consumers."""

    def subscribed(self, consumer_id: int, /) -> None:
        """The client of a new consumer has its answer: notices for it may follow."""


class ClientConnection(Protocol):
    """One client's connection, as its parts and the handlers of its commands use it."""

    address: str
    """``/host:port`` of the peer; empty if unknown."""
    peer: Peer | None
    """The client's version and features, from CONNECT; None before that."""
    identity: Identity
    """Who the client is; nobody before CONNECT."""
    is_open: bool
    socket_paused: bool
    """Whether the broker does not read the socket. Reading resumes when everything received is
    carried out and the memory of clients has room."""
    producers: dict[int, tuple[Producer, Topic]]
    consumers: dict[int, tuple[Consumer, Subscription]]
    watchers: dict[int, Watcher]
    """Watchers of topics by their ids, also those that have no answer yet."""
    creating: dict[tuple[str, int], object]
    """Producers and consumers that are being created, by kind (``producer`` or ``consumer``) and
    id, with the command that creates each. A CLOSE removes the entry and cancels the creation."""

    described_bytes: dict[tuple[str, int], int]
    """Memory of its producers, consumers and watchers, by kind and id. Those of closed ones may
    remain for a while."""

    working_bytes: int
    """Memory of commands that are carried out in slices."""

    @property
    def objects_count(self) -> int:
        """Its producers, consumers and watchers, also those that are being created."""

    @property
    def producer_port(self) -> ProducerPort:
        """Takes the SENDs of this connection and writes their receipts for the engine."""

    @property
    def consumer_port(self) -> ClientConsumerPort:
        """Delivers the engine's messages to the consumers of this connection."""

    @property
    def is_partial(self) -> bool:
        """Whether the present command continues in the next frame."""

    @property
    def peer_blocked(self) -> bool:
        """Whether the peer does not read, so that the transport's buffer is full."""

    def write(self, frame: bytes, /) -> None:
        """Write ``frame`` at the end of this turn, after everything written before."""

    def close_at_client(self, frame: bytes, /) -> None:
        """Tell the client with ``frame`` that one of its producers or consumers is closed. An old
        client does not know such frames: close its whole connection instead."""

    def forget_producer(self, producer_id: int, /) -> bool:
        """Remove a producer, whose receipts no longer count; False if there is none."""

    def refuse(self, command: BaseCommand, error: HeadgateError, /) -> bool:
        """Answer that a command failed; False if the protocol has no such answer."""

    def run_in_slices(self, slices: Iterator[int], /) -> None:
        """Carry out a long command in slices, each of which yields the work that it took. No other
        command of the connection runs before its end. If the connection ends earlier, the rest is
        dropped."""

    def run_waiting(self, coroutine: Coroutine[Any, Any, None], command: BaseCommand, /) -> None:
        """Carry out the rest of a command that waits. Other commands of the connection go on, as
        far as its bounds on waiting commands allow."""

    def pause_reading(self) -> None:
        """Carry out no more commands and read no more until :meth:`resume` finds room."""

    def resume(self) -> None:
        """Resume if every bound that paused the connection has room again."""

    def resume_soon(self) -> None:
        """:meth:`resume`, in a later turn."""

    def unsent_bytes(self) -> int:
        """Bytes that the peer has not taken yet."""

    async def is_alive(self) -> bool:
        """Send a PING; disconnect the peer and return False if it shows no sign of life in time."""

    def close(self) -> None:
        """End the connection after writing the frames of this turn."""

    def abort(self) -> None:
        """End the connection at once, without writing what is left."""


def owner_of(connection: ClientConnection) -> str:
    """Who answers for a connection: its role, or its network if it has none."""
    identity = connection.identity
    return f"role {identity.text}" if identity.role else peer_network_of(connection.address)
