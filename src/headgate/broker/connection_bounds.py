"""What one connection may take of the broker: memory, turns of the loop, time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.base.names import NAME_CHARACTERS_MAX, is_short_line
from headgate.base.units import KIB, MIB, NS_PER_S
from headgate.engine.errors import NotAllowedError
from headgate.wire.messages import CommandProducer, CommandSubscribe

if TYPE_CHECKING:
    from headgate.broker.connection import Connection

OUT_BYTES_MAX = MIB
"""Bytes gathered for one connection in one turn before it counts as full."""

HANDSHAKE_TIMEOUT_S = 10.0
"""A peer that has not sent CONNECT by then is cut off."""

LIVENESS_TIMEOUT_S = 5.0
"""How long a silent peer may hold a name that somebody else asks for."""

REASSURE_EVERY_S = 20.0
"""A peer that is not read hears a PONG so often. C++ clients give a connection up whose PING has no
answer within 30 s."""

CLOSE_TIMEOUT_S = 5.0
"""How long a peer may take to read the last words before the connection is cut."""

COMMANDS_MAX = 1_000
COMMAND_BYTES_MAX = 4 * MIB
"""Commands of one connection that may be waiting for something before it is read no further."""

TURN_WORK_MAX = 256
"""Work for one connection before others have their turn: a SEND, a FLOW, an id that is acknowledged
or given back is 1, another command ``COLD_WORK``. About a millisecond."""
COLD_WORK = 8

COLD_BYTES_PER_WORK = 64
ACK_BYTES_PER_WORK = 256
"""What a command's size adds to its work: parsing, and looking at texts."""

SLICE_IDS = TURN_WORK_MAX
"""Ids of one long command that are looked at in one turn."""

OBJECTS_MAX = 10_000
"""Producers and consumers of one connection, those that are being made included."""
DESCRIPTION_BYTES_MAX = 64 * KIB
"""Names, metadata and properties of one producer or consumer: they are kept as long as it is."""

DESCRIPTIONS_BYTES_MAX = 16 * MIB
"""... of one that comes beside n others: an n-th of this, so that all of one connection together
keep five times as much at most. With all objects that are allowed it is 1.6 KiB each."""

UNREAD_BYTES_MAX = MIB
"""Answers for a peer that does not read them, before it is read no further."""

FORGET_CLOSED_NS = 30 * NS_PER_S
"""SENDs to a producer that the broker closed are dropped, not punished, for this long."""


def check_room(connection: Connection, request: CommandProducer | CommandSubscribe) -> None:
    """Return if there is room for the producer or consumer that ``request`` wants to make.

    Its schema does not count: of a topic's clients only the first one's is kept.

    Raises:
        NotAllowedError: the connection has as many as it may, or the request says too much, or its
            name is none.
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
