"""Looks without names: whoever gets them learns what happened, and not to whom."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

from headgate.agent.looks import (
    ConsumerLook,
    LimitsLook,
    ProofLook,
    QuotaLook,
    SubscriptionLook,
    TopicLook,
)
from headgate.base.names import PARTITION_SUFFIX, InvalidNameError, parse_topic
from headgate.flow.limits.precedence import EffectiveLimit

SALT_BYTES: Final = 32
_DIGITS: Final = 12


class NameHashes:
    """Replaces names by hashes: equal names by equal ones, with a salt that nobody keeps.

    Without the salt a guess at a name cannot be checked.
    """

    def __init__(self, salt: bytes) -> None:
        self._salt = salt

    def name(self, kind: str, text: str) -> str:
        """The hash of a name; empty for an empty one. ``kind`` tells equal names of two kinds
        apart, and stands before the hash."""
        if not text:
            return ""
        found = hashlib.blake2b(f"{kind}/{text}".encode(), key=self._salt).hexdigest()
        return f"{kind}-{found[:_DIGITS]}"

    def topic(self, topic: str) -> str:
        """The full name of a topic, its parts replaced; the number of a partition stays."""
        try:
            name = parse_topic(topic)
        except InvalidNameError:
            return self.name("topic", topic)
        tenant = self.name("tenant", name.tenant)
        namespace = self.name("namespace", str(name.namespace))
        part = "" if name.partition < 0 else f"{PARTITION_SUFFIX}{name.partition}"
        return f"{name.domain}://{tenant}/{namespace}/{self.name('topic', name.base.full)}{part}"

    def topic_look(self, look: TopicLook) -> TopicLook:
        """A look without names and addresses."""
        return replace(
            look,
            topic=self.topic(look.topic),
            owner=self.name("broker", look.owner),
            publisher_addresses=tuple(self.name("address", a) for a in look.publisher_addresses),
            oldest_subscription=self.name("subscription", look.oldest_subscription),
            subscriptions=tuple(map(self._subscription, look.subscriptions)),
        )

    def proof_look(self, proof: ProofLook) -> ProofLook:
        """A look without names."""
        cursors = tuple(
            replace(cursor, subscription=self.name("subscription", cursor.subscription))
            for cursor in proof.cursors
        )
        return replace(proof, topic=self.topic(proof.topic), cursors=cursors)

    def limits_look(self, limits: LimitsLook) -> LimitsLook:
        """Limits without the names of where they are set."""
        return replace(
            limits,
            topic=self.topic(limits.topic),
            dispatch=tuple(self._limit(limit, limits.topic) for limit in limits.dispatch),
            by_subscription={
                self.name("subscription", name): self._limit(limit, limits.topic)
                for name, limit in limits.by_subscription.items()
            },
            publish=self._limit(limits.publish, limits.topic),
        )

    def quota_look(self, quotas: QuotaLook) -> QuotaLook:
        """Quotas without the name of their namespace."""
        tenant = self.name("tenant", quotas.namespace.partition("/")[0])
        namespace = self.name("namespace", quotas.namespace)
        return replace(quotas, namespace=f"{tenant}/{namespace}")

    def _limit(self, limit: EffectiveLimit, topic: str) -> EffectiveLimit:
        namespace = "/".join(topic.partition("://")[2].split("/")[:2])
        hashed = "/".join(self.topic(topic).partition("://")[2].split("/")[:2])
        sources = limit.sources and (
            limit.sources[0].replace(namespace, hashed),
            limit.sources[1].replace(namespace, hashed),
        )
        return replace(limit, source=limit.source.replace(namespace, hashed), sources=sources)

    def _subscription(self, look: SubscriptionLook) -> SubscriptionLook:
        return replace(
            look,
            name=self.name("subscription", look.name),
            active_consumer=self.name("consumer", look.active_consumer),
            consumers=tuple(map(self._consumer, look.consumers)),
        )

    def _consumer(self, look: ConsumerLook) -> ConsumerLook:
        return replace(
            look, name=self.name("consumer", look.name), address=self.name("address", look.address)
        )
