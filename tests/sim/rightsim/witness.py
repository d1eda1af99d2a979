"""What a broker holds of the rights of a role, to be compared later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from headgate.base.names import PERSISTENT
from headgate.broker.connection.consumers import ConnectionConsumers
from headgate.broker.connection.producers import ConnectionProducers
from headgate.broker.service import Broker
from headgate.metadata.rows import Kind, SchemaRow, TopicRow
from headgate.metadata.state import RowState
from tests.sim.rightsim.stage import NAMESPACE, ROLE, TOPICS
from tests.sim.rightsim.verbs import Part, Verb


@dataclass(frozen=True)
class Held:
    """What the broker holds that the right allowed to change."""

    subscriptions: dict[tuple[str, str], tuple[int, dict[str, str], int]]
    """Durable ones by topic and name: resets so far, properties, cursor."""
    publishing: dict[str, tuple[int, int]]
    """By topic: the latest version of its schema, and its epoch; -1 without. As soon as they are
    decided on, and not only when they are stored: dozens of changes of the metadata may wait."""
    topics: list[str]
    """Likewise."""
    connected: list[tuple[Part, str, str]]
    """Producers, those that wait, and consumers of the role."""


def held(broker: Broker, verb: Verb) -> Held:
    """What there is now, of what the verb ends."""
    loaded = [broker.engine.topics[name] for name in TOPICS if name in broker.engine.topics]
    subscriptions = {
        (topic.name.full, name): (each.resets_count, dict(each.properties), each.acks.mark_delete)
        for topic in loaded
        for name, each in topic.subscriptions.items()
        if each.is_durable and name in verb.subscriptions and Part.SUBSCRIPTIONS in verb.lost
    }
    state = broker.catalog._state
    publishing: dict[str, tuple[int, int]] = {}
    if Part.PUBLISHING in verb.lost:
        publishing = {name: (_version(state, name), _epoch(state, name)) for name in TOPICS}
    topics: list[str] = []
    if Part.TOPICS in verb.lost:
        kinds, parent = (Kind.TOPIC, Kind.PARTITIONED), f"{PERSISTENT}://{NAMESPACE}"
        topics = sorted(name for kind in kinds for name in state.staged_children(kind, parent))
    connected = [each for each in _connected(broker) if _is_ended(each, verb)]
    return Held(subscriptions, publishing, topics, connected)


def _version(state: RowState, topic: str) -> int:
    row = state.staged(Kind.SCHEMA, topic)
    return row.version if isinstance(row, SchemaRow) else -1


def _epoch(state: RowState, topic: str) -> int:
    row = state.staged(Kind.TOPIC, topic)
    found = row.epoch if isinstance(row, TopicRow) else None
    return -1 if found is None else found


def changes(before: Held, after: Held) -> Iterator[str]:
    """What is not as it was, in words for a test that fails."""
    for of in fields(Held):
        was, now = getattr(before, of.name), getattr(after, of.name)
        if isinstance(was, dict):
            yield from (
                f"{key}: {was.get(key)} -> {now.get(key)}"
                for key in was | now
                if was.get(key) != now.get(key)
            )
        elif was != now:
            yield f"{of.name}: {sorted(set(was) ^ set(now))}"


def _is_ended(connected: tuple[Part, str, str], verb: Verb) -> bool:
    part, _, name = connected
    return part in verb.lost and (part is not Part.SUBSCRIPTIONS or name in verb.subscriptions)


def _connected(broker: Broker) -> Iterator[tuple[Part, str, str]]:
    for topic in broker.engine.topics.values():
        waiting = [] if topic.access is None else topic.access.waiters
        for producer in [*topic.producers.values(), *[each.producer for each in waiting]]:
            if _is_of_role(producer.port):
                yield Part.PUBLISHING, topic.name.full, producer.name
        for name, subscription in topic.subscriptions.items():
            if any(_is_of_role(consumer.port) for consumer in subscription.consumers):
                yield Part.SUBSCRIPTIONS, topic.name.full, name


def _is_of_role(port: Any) -> bool:
    if not isinstance(port, ConnectionProducers | ConnectionConsumers):
        return False
    return ROLE in (port.identity.role, port.identity.original_role)
