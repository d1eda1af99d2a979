"""Expiring up to a position: that far and not one entry further."""

from __future__ import annotations

from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


@played()
async def test_a_position_that_is_not_held_expires_nothing_beyond_it(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    producer = await client.producer(TOPIC)
    receipts = [await producer.send(b"%d" % i) for i in range(4)]
    facade = AdminFacade(world.broker, world.observer)
    ledger = receipts[0].ledger_id
    for position in (EARLIEST, Position(ledger - 1, 7)):
        assert not await world.ask(facade.expire_messages(NAME, "s", AtPosition(position)))
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    assert subscription.backlog_entries == 4
    assert await world.ask(facade.expire_messages(NAME, "s", AtPosition(receipts[1])))
    assert subscription.backlog_entries == 2
    assert await world.ask(facade.expire_messages(NAME, "s", AtPosition(LATEST)))
    assert subscription.backlog_entries == 0
    await consumer.close()
