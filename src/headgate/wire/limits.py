"""Sizes of the protocol, each with its reason.

``message`` means metadata + payload of one entry, as a client measures it; ``frame`` means what
follows a frame's first length word.
"""

from __future__ import annotations

from headgate.base.errors import invariant
from headgate.base.units import KIB, MIB

MESSAGE_BYTES_MAX_DEFAULT = 5 * MIB
"""Pulsar's default; sent in CONNECTED, and clients refuse larger messages by themselves."""

FRAME_HEADROOM_BYTES = 10 * KIB
"""What a frame may hold beyond the largest message: command, checksum, lengths."""

FRAME_BYTES_MAX_DEFAULT = MESSAGE_BYTES_MAX_DEFAULT + FRAME_HEADROOM_BYTES

COMMAND_BYTES_MAX_DEFAULT = 256 * KIB
"""What a command may have without the body of a SEND. The longest that clients send is a PRODUCER
with a schema; ACK and REDELIVER, which name any number of messages, may fill a frame."""

CONNECT_BYTES_MAX = 64 * KIB
"""The longest first frame: a CONNECT with credentials."""

PARTS_MAX = 1_000
"""Messages inside a command (properties, most of all) whose texts are looked at: 1.4 us each."""

BUFFER_BYTES_START = 8 * KIB
"""Receive buffer of a new connection: most connections never need more."""

BUFFER_BYTES_STEADY = 64 * KIB
"""Largest receive buffer that is kept while no single frame needs more.

One read then brings about 60 messages of 1 KiB, which is a loop turn's worth of work.
"""

READ_BYTES_MIN = 4 * KIB
"""Least room offered to a read, unless less completes the frame that is being received."""

invariant(
    READ_BYTES_MIN < BUFFER_BYTES_START <= BUFFER_BYTES_STEADY, "receive buffer sizes out of order"
)


def frame_bytes_max(message_bytes_max: int) -> int:
    """The limit for :class:`headgate.wire.frame.FrameDecoder` given that for messages."""
    return message_bytes_max + FRAME_HEADROOM_BYTES
