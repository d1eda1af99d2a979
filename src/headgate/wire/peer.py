"""What a client understands, by the protocol version and features that its CONNECT names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.wire.messages import CommandConnect

PROTOCOL_VERSION_MAX = 21
"""The newest version of the protocol that Headgate speaks."""

JAVA_CLIENT: Final = "Pulsar-Java-v"
"""Start of the client version of Java's client."""

CLIENT_VERSION_CHARACTERS_MAX = 256
"""Longer names that clients give themselves are cut: statistics repeat them for each producer."""


@dataclass(frozen=True, slots=True)
class Peer:
    """What a client understands: one property for each command or form that older ones do not."""

    version: int
    """The highest version that both sides speak, 0 to ``PROTOCOL_VERSION_MAX``."""

    client_version: str
    """The client's name for itself, shown in statistics."""

    reads_broker_entry_metadata: bool
    """Whether entries may keep their broker entry metadata."""

    refreshes_credentials: bool
    """Whether it answers AUTH_CHALLENGE with new credentials."""

    leaves_out_partitions: bool = False
    """Whether its producers may be connected to some partitions of a topic only."""

    @property
    def knows_ping(self) -> bool:
        """Whether the broker may send PING."""
        return self.version >= 1

    @property
    def knows_batches(self) -> bool:
        """Whether it takes entries of several messages; otherwise it gets none."""
        return self.version >= 4

    @property
    def knows_close(self) -> bool:
        """Whether it takes CLOSE_PRODUCER and CLOSE_CONSUMER; otherwise close the connection."""
        return self.version >= 5

    @property
    def knows_end_of_topic(self) -> bool:
        """Whether the broker may send REACHED_END_OF_TOPIC. The released C++, Python, Node.js and
        Go clients close their connection on it, whatever version they speak: only Java's knows it.
        """
        return self.version >= 9 and self.client_version.startswith(JAVA_CLIENT)

    @property
    def knows_checksums(self) -> bool:
        """Whether it takes entries with their checksum; otherwise strip it."""
        return self.version >= 11

    @property
    def knows_active_consumer_change(self) -> bool:
        """Whether the broker may send ACTIVE_CONSUMER_CHANGE."""
        return self.version >= 12


def peer_of(connect: CommandConnect) -> Peer:
    """What the client that sent this CONNECT understands."""
    version = max(0, min(connect.protocol_version, PROTOCOL_VERSION_MAX))
    return Peer(
        version=version,
        client_version=connect.client_version[:CLIENT_VERSION_CHARACTERS_MAX],
        reads_broker_entry_metadata=(
            version >= 18 and connect.feature_flags.supports_broker_entry_metadata
        ),
        refreshes_credentials=version >= 14 and connect.feature_flags.supports_auth_refresh,
        leaves_out_partitions=connect.feature_flags.supports_partial_producer,
    )
