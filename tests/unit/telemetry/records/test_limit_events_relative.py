"""A limit that moves with the publish rate, as the telemetry tells it (law 1.7)."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.metadata.policies import DispatchRate
from headgate.record.fields import Kind
from headgate.testing import World
from tests.unit.telemetry.records.watching import Watch, events, watch
from tests.unit.telemetry.support import NAME, publish

SOURCE = "topic policy, above the publish rate"


async def publish_for(world: World, per_s: int, seconds: int) -> None:
    producer = await (await world.connect()).producer(NAME)
    for _ in range(per_s * seconds // 10):
        producer.send_nowait(b"x", batch=[b"x"] * 10)
        await asyncio.sleep(10 / per_s)


async def prepared(world: World, field: str) -> Watch:
    own = await watch(world)
    await publish(world, 1)
    await (await world.connect()).subscribe(NAME, "s")
    rate = DispatchRate(50, relative_to_publish_rate=True)
    await own.after(1)
    plan = own.broker.catalog.plan_topic_policies(parse_topic(NAME), **{field: rate})
    await own.broker.writer.commit(plan)
    return own


@pytest.mark.parametrize(
    ("field", "level"),
    [("dispatch_rate", "topic"), ("subscription_dispatch_rate", "subscription")],
)
def test_rows_sum_up_the_moves_and_no_event_reports_each_one(field: str, level: str) -> None:
    async def scenario(world: World) -> None:
        own = await prepared(world, field)
        assert events(await own.after(0)) == ["limit_changed"]
        for per_s, limit in ((200, 250), (1_000, 1_050)):
            await publish_for(world, per_s, 2)
            window = await own.window()
            assert "limit_changed" not in events(window)
            (row,) = window[Kind.SUBSCRIPTION]
            assert row[f"limit_{level}_messages"] == pytest.approx(limit, rel=0.03)
            assert row[f"limit_{level}_source"] == SOURCE
            (limiter,) = (r for r in window[Kind.LIMITER] if r["level"] == level)
            assert limiter["limit"] == row[f"limit_{level}_messages"]
            assert limiter["limit_source"] == SOURCE

    with World() as world:
        world.run(scenario(world))
