"""The settings that the engine reads on the path of a message."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.units import MIB, NS_PER_MS, NS_PER_S


@dataclass(slots=True)
class UnackedLimits:
    """The limits on unacknowledged messages of shared consumers and subscriptions; 0 is none."""

    unacked_per_consumer_max: int = 50_000
    unacked_per_subscription_max: int = 200_000


@dataclass(slots=True)
class EngineLimits(UnackedLimits):
    """Settings as plain attributes. Dynamic settings are assigned in place. A topic's policies may
    have other limits on its unacknowledged messages."""

    failover_delay_ns: int = 1_000 * NS_PER_MS
    backlogged_entries_min: int = 1_000
    """managedLedgerCursorBackloggedThreshold: a subscription that is caught up falls behind when
    more entries than this wait for it."""
    hold_park_ns: int = 20 * NS_PER_S
    """headgateHoldParkMs: how long a SEND may wait for room in a backlog quota or on the disk."""
    parked_bytes_per_connection_max: int = 8 * MIB
    parked_bytes_max: int = 64 * MIB
    parked_bytes_over_max: int = 64 * MIB
    """This far beyond ``parked_bytes_max`` producers are closed, whatever their SENDs wait for: the
    last bound on memory."""
    parked_send_bytes: int = 160
    """About what a parked SEND takes beside its entry: for small entries nearly all of it."""
    deduplicated_producers_max: int = 10_000
    """brokerDeduplicationMaxNumberOfProducers: producers that the deduplication of a topic
    remembers, besides those that are connected."""
    failover_hashes_partitions: bool = False
    """activeConsumerFailoverConsistentHashing: also partitions choose the active consumer of a
    failover subscription on the hash ring."""
