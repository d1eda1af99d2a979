"""Sizes of the protocol, each with its reason.

A *message* is metadata and payload of one entry, as a client measures it. A *frame* is what follows
a frame's first length word.
"""

from __future__ import annotations

from headgate.base.errors import invariant
from headgate.base.units import KIB, MIB

MESSAGE_BYTES_MAX_DEFAULT = 5 * MIB
"""Pulsar's default; CONNECTED announces it, and clients refuse to send larger messages."""

FRAME_HEADROOM_BYTES = 10 * KIB
"""Room in a frame beyond the largest message, for command, checksum and lengths."""

FRAME_BYTES_MAX_DEFAULT = MESSAGE_BYTES_MAX_DEFAULT + FRAME_HEADROOM_BYTES

METADATA_BYTES_MAX = MIB
"""Longest metadata of a message. Each look at it takes up to 2 ns a byte, and a message is looked
at several times. Pulsar has no such bound."""

COMMAND_BYTES_MAX_DEFAULT = 256 * KIB
"""Most bytes of a command, without the body of a SEND. The longest in practice is a PRODUCER with a
schema. ACK and REDELIVER name any number of messages and may fill a frame."""

CONNECT_BYTES_MAX = 64 * KIB
"""The longest first frame: a CONNECT with credentials."""

PARTS_MAX = 1_000
"""Most submessages of a command (mostly properties) whose texts are checked: 1.4 us each."""

BUFFER_BYTES_START = 8 * KIB
"""Receive buffer of a new connection: most connections never need more."""

BUFFER_BYTES_STEADY = 64 * KIB
"""Largest receive buffer of a connection while no frame needs more.

One read then brings about 60 messages of 1 KiB, enough work for one turn of the event loop.
"""

READ_BYTES_MIN = 4 * KIB
"""Least room offered to a read, unless the frame that is being received needs less."""

invariant(
    READ_BYTES_MIN < BUFFER_BYTES_START <= BUFFER_BYTES_STEADY, "receive buffer sizes out of order"
)


def frame_bytes_max(message_bytes_max: int) -> int:
    """The frame limit for :class:`headgate.wire.frame.FrameDecoder` that fits a message limit."""
    return message_bytes_max + FRAME_HEADROOM_BYTES
