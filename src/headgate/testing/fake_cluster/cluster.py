"""Brokers and topics whose figures follow from the time alone."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_S

BUNDLES = 4
"""Bundles of each namespace."""


@dataclass(slots=True)
class FakeSubscription:
    """A subscription with constant rates. Amounts are messages; an entry is one message."""

    name: str = "sub"
    type: str = "Shared"
    consumers: int = 1
    acked_per_s: float = 0.0
    """At most what was published."""
    permits: int = 1_000
    """Of each consumer."""
    unacked: int = 0
    is_blocked: bool = False
    events: tuple[float, ...] = (0.0,) * 6
    """Throttled events a second: messages and bytes of subscription, topic and broker."""
    is_stuck: bool = False
    """Whether the dispatcher says that it reads, and nothing is read."""


@dataclass(slots=True)
class FakeTopic:
    """A topic or partition with constant rates."""

    name: str
    """Full."""
    published_per_s: float = 0.0
    subscriptions: list[FakeSubscription] = field(default_factory=list)
    entry_bytes: int = 100
    publishers: int = 1
    policies: Mapping[str, object] = field(default_factory=dict)
    """By the name of the route: ``dispatchRate``, ``publishRate``, ..."""
    quota_bytes: int | None = None
    """Its own backlog quota; None: its namespace's."""


@dataclass(slots=True)
class FakeCluster:
    """A cluster. Time is in nanoseconds since its start."""

    brokers: list[str] = field(default_factory=lambda: ["broker-0:8080"])
    topics: dict[str, FakeTopic] = field(default_factory=dict)
    partitioned: dict[str, int] = field(default_factory=dict)
    """Number of partitions by full name."""
    version: str = "4.0.8"
    settings: dict[str, str] = field(default_factory=dict)
    namespaces: dict[str, dict[str, object]] = field(default_factory=dict)
    """Policies by namespace."""
    quotas: dict[str, dict[str, dict[str, object]]] = field(default_factory=dict)
    """Backlog quotas by namespace, then type."""
    age_ns: int = 0
    """How long it has run when a transport to it is made."""
    epoch_ms: int = 1_750_000_000_000
    clock_skew_ms: dict[str, int] = field(default_factory=dict)
    """How far the clock of a broker is ahead."""
    is_numbered: bool = False
    """Whether throttled events are counted, as from Pulsar 4.0.4 on."""
    moved: dict[str, str] = field(default_factory=dict)
    """Topics that have another owner than their name says."""
    by_owner: dict[str, list[FakeTopic]] = field(default_factory=dict)

    def add(self, topics: Iterable[FakeTopic]) -> None:
        """Create topics."""
        for topic in topics:
            self.topics[topic.name] = topic
            self.by_owner.setdefault(self.owner(topic.name), []).append(topic)

    def remove(self, name: str) -> None:
        """Delete a topic."""
        topic = self.topics.pop(name)
        self.by_owner[self.owner(name)].remove(topic)
        self.moved.pop(name, None)

    def move(self, name: str, broker: str) -> None:
        """Unload a topic from its owner, and load it at ``broker``."""
        topic = self.topics[name]
        self.by_owner[self.owner(name)].remove(topic)
        self.moved[name] = broker
        self.by_owner.setdefault(broker, []).append(topic)

    def owner(self, name: str) -> str:
        """The broker that serves a topic."""
        return self.moved.get(name) or self.brokers[zlib.crc32(name.encode()) % len(self.brokers)]

    def bundle(self, name: str) -> str:
        """The bundle of a topic, as its broker names it."""
        index = zlib.crc32(name.encode()) % BUNDLES
        width = (1 << 32) // BUNDLES
        return f"0x{index * width:08x}_0x{(index + 1) * width - (index < BUNDLES - 1):08x}"

    def quota_bytes(self, topic: FakeTopic) -> int:
        """The size quota in force for a topic; -1 for none."""
        if topic.quota_bytes is not None:
            return topic.quota_bytes
        quotas = self.quotas.get(str(parse_topic(topic.name).namespace), {})
        size = quotas.get("destination_storage", {}).get("limitSize", -1)
        return size if isinstance(size, int) else -1

    def namespace_topics(self, namespace: str) -> list[str]:
        """The topics and partitions of a namespace."""
        return [name for name in self.topics if str(parse_topic(name).namespace) == namespace]


def amount(per_s: float, at_ns: int) -> int:
    """What a constant rate amounts to."""
    return int(per_s * at_ns / NS_PER_S)


def many_topics(count: int, *, namespaces: int = 20, backlogs: int = 10) -> Iterable[FakeTopic]:
    """``count`` topics with a subscription and a consumer each, of which ``backlogs`` have a
    backlog that grows: each by one message a second more than the one before."""
    for index in range(count):
        name = f"persistent://acme/ns-{index % namespaces}/topic-{index}"
        rate = 100.0
        slow = index + 1 if index < backlogs else 0
        sub = FakeSubscription(
            acked_per_s=rate - slow, permits=0 if slow else 1_000, unacked=100 if slow else 0
        )
        yield FakeTopic(name, rate, [sub])
