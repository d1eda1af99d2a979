"""What watches a broker from its start on."""

from __future__ import annotations

import asyncio

from headgate.base.names import parse_topic
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_the_sweep_has_it_note_every_subscription(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    await asyncio.sleep(3)
    (subscription,) = world.broker.engine.topics[TOPIC].subscriptions.values()
    assert world.observer.history.track(subscription) is not None
    report = await world.observer.explain_topic(parse_topic(TOPIC))
    assert [found["subscription"] for found in report["subscriptions"]] == ["s"]
    assert (await world.observer.explain_top(5))["subscriptionsTotal"] == 1


@played()
async def test_a_round_comes_when_the_history_has_one_due(world: World) -> None:
    rounds = [world.observer.begin_round() for _ in range(3)]
    assert rounds == [True, True, True]  # nothing changes, so each second has one
