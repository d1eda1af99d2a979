"""Short words for tests of publish limits on a simulated broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.broker.connection.connection import Connection
from headgate.metadata.policies import PublishRate
from headgate.testing import SimClient, SimProducer, World
from tests.unit.broker.playing import TOPIC


def server_side(world: World, client: SimClient) -> Connection:
    """The broker's side of a client's connection."""
    own = client.transport._peer._protocol  # type: ignore[attr-defined]
    (found,) = [connection for connection in world.broker.connections if connection is own]
    return found


async def limit_topic(
    world: World, messages: int = -1, size_bytes: int = -1, *, topic: str = TOPIC
) -> None:
    """Set a topic's own publish rate, or (both -1) remove it."""
    rate = None if max(messages, size_bytes) <= 0 else PublishRate(messages, size_bytes)
    name = parse_topic(topic)
    await world.broker.registry.get_or_create(name, create=True)
    catalog = world.broker.catalog
    await world.broker.writer.commit(catalog.plan_topic_policies(name, publish_rate=rate))


async def set_dynamic(world: World, name: str, value: str | None) -> None:
    """Set a dynamic setting, or (None) put it back."""
    await world.broker.writer.commit(world.broker.catalog.plan_setting(name, value))


def send_many(producer: SimProducer, count: int, *, batch: Sequence[bytes] = ()) -> list[Any]:
    """Futures of so many receipts."""
    return [producer.send_nowait(b"%d" % number, batch=batch) for number in range(count)]


def done(receipts: list[Any]) -> int:
    """How many of them came."""
    return sum(receipt.done() and not receipt.exception() for receipt in receipts)


def in_order(receipts: list[Any]) -> bool:
    """Whether the positions are those of the order of the sends."""
    found: list[Position] = [receipt.result() for receipt in receipts]
    return found == sorted(found)
