"""What the disk has lost, as the broker shows it, and what an administrator may do about it.

A topic is damaged from the start on; a subscription from the start on, or since it came to an entry
that cannot be read any more. All others go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic

if TYPE_CHECKING:
    from headgate.broker.service import Broker

NAMED_MAX = 3
"""So many are named in one sentence."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One topic or subscription that cannot go on."""

    topic: str
    subscription: str
    """Empty: the whole topic."""
    text: str
    """Where, and what of it is lost."""

    def __str__(self) -> str:
        whose = f", subscription {self.subscription}" if self.subscription else ""
        return f"{self.topic}{whose} ({self.text})"


def damage_of(subscription: Subscription) -> str:
    """What is lost of a subscription or its topic; empty while nothing is."""
    return subscription.topic.log.damage or subscription.damage or subscription.damaged_entry


def topic_damage_sentence(damage: str) -> str:
    """What ``explain`` says of a topic that lost something."""
    return (
        f"this topic is damaged on the disk and refuses producers, consumers and reads: {damage}. "
        "Accept what is lost with 'headgate admin topics accept-damage', or delete the topic."
    )


def subscription_damage_sentence(parts: Sequence[Subscription]) -> str:
    """What ``explain`` says of a subscription, given as its partitions' parts, that cannot go on
    because of damage."""
    part = next(part for part in parts if damage_of(part))
    if part.topic.log.damage:
        return topic_damage_sentence(part.topic.log.damage)
    if part.damage:
        return (
            f"this subscription is damaged on the disk and refuses consumers: {part.damage}. "
            "Reset its cursor to where messages may come again from, accept what is lost with "
            "'headgate admin topics accept-damage', or delete it."
        )
    return (
        f"it stands in front of a message that is damaged on the disk: {part.damaged_entry}. Skip "
        "it, or have all damaged messages of the topic skipped with 'headgate admin topics "
        "accept-damage'."
    )


def damages(engine: Engine) -> Iterator[Damage]:
    """Everything that cannot go on now."""
    for number in sorted(engine.damaged_topics):
        topic = engine.by_number.get(number)
        if topic is None:
            continue
        if topic.log.damage:
            yield Damage(topic.name.full, "", topic.log.damage)
            continue
        for subscription in topic.subscriptions.values():
            if damage := damage_of(subscription):
                yield Damage(topic.name.full, subscription.name, damage)


def damage_counts(engine: Engine) -> tuple[int, int]:
    """How many topics, and how many subscriptions of others, cannot go on now."""
    found = list(damages(engine))
    topics = sum(not damage.subscription for damage in found)
    return topics, len(found) - topics


def damage_text(engine: Engine) -> str:
    """All damage in one sentence; empty while there is none."""
    found = list(damages(engine))
    if not found:
        return ""
    named = "; ".join(str(damage) for damage in found[:NAMED_MAX])
    more = len(found) - NAMED_MAX
    rest = f"; and {more} more" if more > 0 else ""
    return f"damaged on the disk, and stopped until the damage is accepted: {named}{rest}"


async def accept_damage(broker: Broker, topic: Topic) -> None:
    """Serve a topic and its subscriptions as they are, without what is lost.

    Raises:
        StorageError: it could not be stored; after a restart they are damaged again.
    """
    number = topic.log.number
    managed = broker.logs.of(topic)
    managed.log.accept_damage(number, managed.reader.damaged_entries(number))
    for subscription in topic.subscriptions.values():
        subscription.damage_accepted()
    await broker.when_durable(topic)
