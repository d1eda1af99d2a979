"""Entries that a topic gives up while a cursor still stands before them."""

from __future__ import annotations

from headgate.base.names import parse_topic
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.ledger import LedgerSettings
from headgate.metadata.policies import Retention
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

SMALL_LEDGERS = LedgerSettings(segment_bytes=1 << 16, ledger_entries_max=2, ledger_age_ms_min=0)


@played(ledger=SMALL_LEDGERS, settings={"retentionCheckIntervalInSeconds": "1"})
async def test_a_cursor_moved_back_while_entries_go_owes_what_is_left(world: World) -> None:
    """What is given up was acknowledged; the seek comes before that is durable."""
    name = parse_topic(TOPIC)
    client = await world.connect()
    producer = await client.producer(TOPIC)
    facade = AdminFacade(world.broker, world.observer)
    change = facade.catalog.plan_topic_policies(name, retention=Retention(-1, -1))
    await world.ask(facade.commit(change))
    consumer = await client.subscribe(TOPIC, "s")
    receipts = [await producer.send(b"%d" % i) for i in range(9)]
    await consumer.ack_through(receipts[5])
    change = facade.catalog.plan_topic_policies(name, retention=None)
    await world.ask(facade.commit(change))
    topic = world.broker.engine.topics[TOPIC]
    world.broker.log.stage_trim(topic.log, 6)
    await world.ask(facade.reset_cursor(name, "s", AtPosition(receipts[0])))
    subscription = topic.subscriptions["s"]
    assert topic.log.first == 6
    assert subscription.backlog_entries == subscription.backlog_messages == 3
    assert topic.slowest_durable_ordinal() == 6, "nothing more could ever be given up"
