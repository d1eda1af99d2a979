"""Skips by number that come at once."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from headgate.base.work_units import PIECE_UNITS, SLICE_UNITS
from headgate.engine.subscription import Subscription
from headgate.facade.admin_facade import AdminFacade
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


@played()
async def test_a_skip_by_number_takes_a_slice_before_it_looks_at_anything(world: World) -> None:
    """It may go through the runs of some blocks, milliseconds, and many requests come at once."""
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    producer = await client.producer(TOPIC)
    for i in range(4):
        await producer.send(b"%d" % i)
    facade = AdminFacade(world.broker, world.observer)
    give_way, after_messages = AdminFacade.give_way, Subscription.after_messages
    steps: list[int | str] = []

    async def giving_way(own: AdminFacade, pieces: int = 1) -> None:
        steps.append(pieces * PIECE_UNITS)
        await give_way(own, pieces)

    def looking(subscription: Subscription, count: int) -> int:
        steps.append("looks")
        return after_messages(subscription, count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdminFacade, "give_way", giving_way)
        patch.setattr(Subscription, "after_messages", looking)
        await world.ask(facade.skip_messages(NAME, "s", 3))
    assert steps == [SLICE_UNITS, "looks", "looks"]
    assert world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_entries == 1
    await consumer.close()
