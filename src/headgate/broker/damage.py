"""Topics and subscriptions that lost data on the disk and stop until the loss is accepted.

The start finds damaged topics and subscriptions. A subscription is also damaged when it reaches an
entry that cannot be read any more. All others keep working.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.storage.managed_logs import ManagedLogs

NAMED_MAX = 3
"""Damaged topics and subscriptions that one sentence names."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged topic or subscription."""

    topic: str
    subscription: str
    """Empty: the whole topic."""
    text: str
    """Where the damage is and what is lost."""

    def __str__(self) -> str:
        whose = f", subscription {self.subscription}" if self.subscription else ""
        return f"{self.topic}{whose} ({self.text})"


def damage_of(subscription: Subscription) -> str:
    """What a subscription or its topic lost; empty if nothing."""
    return subscription.topic.log.damage or subscription.damage or subscription.damaged_entry


def topic_damage_sentence(damage: str) -> str:
    """The sentence of ``explain`` about a damaged topic."""
    return (
        f"this topic is damaged on the disk and refuses producers, consumers and reads: {damage}. "
        "Accept the loss with 'headgate admin topics accept-damage', or delete the topic."
    )


def subscription_damage_sentence(parts: Sequence[Subscription]) -> str:
    """The sentence of ``explain`` about a damaged subscription. ``parts`` are its subscriptions on
    each partition; at least one is damaged."""
    part = next(part for part in parts if damage_of(part))
    if part.topic.log.damage:
        return topic_damage_sentence(part.topic.log.damage)
    if part.damage:
        return (
            f"this subscription is damaged on the disk and refuses consumers: {part.damage}. "
            "Reset its cursor to a position from which messages may be repeated, accept the loss "
            "with 'headgate admin topics accept-damage', or delete it."
        )
    return (
        f"its next message is damaged on the disk: {part.damaged_entry}. Skip that message, or all "
        "damaged messages of the topic with 'headgate admin topics accept-damage'."
    )


def damages(engine: Engine) -> Iterator[Damage]:
    """Every damaged topic, and every damaged subscription of the others."""
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
    """The number of damaged topics, and of damaged subscriptions of other topics."""
    found = list(damages(engine))
    topics = sum(not damage.subscription for damage in found)
    return topics, len(found) - topics


def damage_text(engine: Engine) -> str:
    """All damage in one sentence; empty if there is none."""
    found = list(damages(engine))
    if not found:
        return ""
    named = "; ".join(str(damage) for damage in found[:NAMED_MAX])
    more = len(found) - NAMED_MAX
    rest = f"; and {more} more" if more > 0 else ""
    return f"damaged on the disk, and stopped until the damage is accepted: {named}{rest}"


async def accept_damage(logs: ManagedLogs, topic: Topic) -> None:
    """Serve a damaged topic and its subscriptions without the data that is lost.

    Raises:
        StorageError: the acceptance could not be stored; after a restart they are damaged again.
    """
    number = topic.log.number
    managed = logs.of(topic)
    managed.log.accept_damage(number, managed.reader.damaged_entries(number))
    for subscription in topic.subscriptions.values():
        subscription.damage_accepted()
    topic.engine.may_release(topic)
    await managed.committer.when_durable()
