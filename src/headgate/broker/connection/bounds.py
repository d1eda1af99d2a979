"""Bounds of one connection: memory, work in each turn of the loop, and time.

The work is counted in the units of :mod:`headgate.base.work_units`.
"""

from __future__ import annotations

from headgate.base.names import NAME_CHARACTERS_MAX, is_short_line
from headgate.base.units import KIB, MIB, NS_PER_S
from headgate.base.work_units import (
    ACK_ID,
    COLD,
    COLD_BYTES_PER_UNIT,
    HOT_BYTES_PER_UNIT,
    REDELIVER_ID,
    TURN_UNITS,
)
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.held_memory import (
    DESCRIPTION_FACTOR,
    PROPERTY_BYTES,
    READER_BYTES,
    WAITING_BYTES,
    WAITING_ID_BYTES,
    WAITING_WORD_BYTES,
)
from headgate.engine.errors import NotAllowedError
from headgate.wire.codes import CommandType
from headgate.wire.messages import BaseCommand, CommandProducer, CommandSubscribe

OUT_BYTES_MAX = MIB
"""Bytes of entries in one turn after which a connection takes no more of them."""

HANDSHAKE_TIMEOUT_S = 10.0
"""The broker disconnects a peer that has sent no CONNECT after this time."""

LIVENESS_TIMEOUT_S = 5.0
"""How long a silent peer keeps a producer name or an exclusive subscription that another client
requests."""

PONG_PERIOD_S = 20.0
"""Interval of the PONGs to a peer whose socket the broker does not read. C++ clients close a
connection whose PING gets no answer within 30 s."""

CLOSE_TIMEOUT_S = 5.0
"""How long a peer may take to read the last frames before the broker aborts a closed
connection."""

COMMANDS_MAX = 1_000
COMMAND_BYTES_MAX = 4 * MIB
"""Commands of one connection that may wait. Beyond that the broker stops reading it."""

SAMPLE_COMMANDS = 8
"""From so many of the commands that wait the broker judges the work of all of them."""

SMALL_REST_BYTES = 8 * KIB
"""A frame of which more is missing waits as one of much work: nobody waits for an answer to it."""

PONG_WORK_EXPECTED = 3
"""More than a PONG takes: it has shown that the peer is alive when it was read, and nobody waits
for an answer. So the PONGs of thousands let a message of another client pass."""

_LIGHT = frozenset((CommandType.SEND, CommandType.ACK, CommandType.FLOW, CommandType.PING))


def work_expected(kind: int, size_bytes: int) -> int:
    """The work for a command of ``size_bytes`` without its body, before it is parsed. One that
    names many ids takes more."""
    if kind == CommandType.PONG:
        return PONG_WORK_EXPECTED
    if kind in _LIGHT:
        return 1 + size_bytes // HOT_BYTES_PER_UNIT
    return COLD + size_bytes // COLD_BYTES_PER_UNIT


SLICE_IDS = TURN_UNITS // ACK_ID
"""Ids of one long ACK that one turn processes."""
SLICE_REDELIVERED_IDS = TURN_UNITS // REDELIVER_ID
"""Ids of one long REDELIVER that one turn processes."""

OBJECTS_MAX = 10_000
"""Most producers and consumers of one connection, with those that are being created."""
WATCHERS_MAX = 1_000
"""Most watchers of topics of one connection: a client has one for each pattern."""
DESCRIPTION_BYTES_MAX = 64 * KIB
"""Most bytes of the names, metadata and properties of one producer or consumer, which stay in
memory with it."""

DESCRIPTIONS_BYTES_MAX = 16 * MIB
"""The n-th producer or consumer of a connection may take an n-th of this, at most
:data:`DESCRIPTION_BYTES_MAX`. Together they take at most five times this; the last of
:data:`OBJECTS_MAX` may take 1.6 KiB."""

UNREAD_BYTES_MAX = MIB
"""Bytes of answers that a peer may leave unread. Beyond that the broker stops reading it."""

FORGET_CLOSED_NS = 30 * NS_PER_S
"""For this time the broker drops SENDs to a producer that it closed. Later they break the
protocol."""


def check_watchers(connection: ClientConnection) -> None:
    """Check that the connection may have one more watcher of topics.

    Raises:
        NotAllowedError: it has too many.
    """
    if len(connection.watchers) >= WATCHERS_MAX:
        raise NotAllowedError(
            f"This connection has {WATCHERS_MAX} watchers of topics: no more are allowed"
        )


def check_room(connection: ClientConnection, request: CommandProducer | CommandSubscribe) -> int:
    """Check that the connection may have the producer or consumer that ``request`` creates; return
    the bytes of its description.

    The size of its schema does not count: a definition is stored once for its topic.

    Raises:
        NotAllowedError: the connection has too many, the request is too large, or its name is
            invalid.
    """
    present = len(connection.producers) + len(connection.consumers) + len(connection.creating)
    if present >= OBJECTS_MAX:
        raise NotAllowedError(
            f"This connection has {present} producers and consumers: {OBJECTS_MAX} are allowed"
        )
    if isinstance(request, CommandProducer):
        kind, name = "producer", request.producer_name
    else:
        kind, name = "consumer", request.consumer_name
    if not is_short_line(name):
        raise NotAllowedError(
            f"Invalid {kind} name {name[:80]!r}: {NAME_CHARACTERS_MAX} characters, none of them a "
            "control character, are allowed"
        )
    size_bytes = request.ByteSize()
    if request.HasField("schema"):
        size_bytes -= request.schema.ByteSize()
    allowed_bytes = min(DESCRIPTION_BYTES_MAX, DESCRIPTIONS_BYTES_MAX // (present + 1))
    if size_bytes > allowed_bytes:
        beside = f" beside {present} others of this connection" * (present > 0)
        raise NotAllowedError(
            f"Names, metadata and properties take {size_bytes} bytes: "
            f"{allowed_bytes} are allowed{beside}"
        )
    return size_bytes


def bytes_beside(request: CommandProducer | CommandSubscribe) -> int:
    """What a producer or consumer takes beside its description: for its properties, and for the
    subscription of a reader."""
    size_bytes = PROPERTY_BYTES * len(request.metadata)
    if isinstance(request, CommandSubscribe):
        size_bytes += PROPERTY_BYTES * len(request.subscription_properties)
        size_bytes += READER_BYTES * (not request.durable)
    return size_bytes


def taken_bytes(command: BaseCommand, size_bytes: int) -> int:
    """What a command of ``size_bytes`` takes while it waits: its message, what was made of it, and
    the task of its handler."""
    match command.type:
        case CommandType.PRODUCER:
            beside = bytes_beside(command.producer)
        case CommandType.SUBSCRIBE:
            beside = bytes_beside(command.subscribe)
        case CommandType.ACK:
            ids = command.ack.message_id
            words_count = sum([len(one.ack_set) for one in ids])
            beside = WAITING_ID_BYTES * len(ids) + WAITING_WORD_BYTES * words_count
        case CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES:
            request = command.redeliverUnacknowledgedMessages
            beside = WAITING_ID_BYTES * len(request.message_ids)
        case _:
            beside = 0
    return WAITING_BYTES + DESCRIPTION_FACTOR * size_bytes + beside
