"""F8: the wall clock jumps by an hour or ten years in either direction, also over a restart.

Nothing is trimmed or evicted early, rates follow the time that passes, and publish times are stored
as the producer gave them or the broker's rule bounds them. ``tests/unit/storage/test_log_clock.py``
has ages, seeks and the lines of a start.
"""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import NamespaceName
from headgate.facade.admin_facade import AdminFacade
from headgate.metadata.policies import Retention
from headgate.observe.stats.fields import StatsOptions
from headgate.testing import World
from tests.unit.broker.playing import TOPIC
from tests.unit.storage.test_log_clock import (
    HOUR_S,
    NAME,
    YEARS_S,
    backlog,
    evicted,
    played,
    prepared,
    restarted,
    step,
    time_quota,
)

NAMESPACE = NamespaceName("public", "default")


async def retention(world: World, minutes: int) -> None:
    """Keep what is acknowledged for so long."""
    policy = Retention(retention_time_in_minutes=minutes, retention_size_in_mb=-1)
    plan = world.broker.catalog.plan_namespace_policies(NAMESPACE, retention=policy)
    await world.broker.writer.commit(plan)


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S, YEARS_S, -YEARS_S])
def test_a_jump_trims_and_evicts_nothing_and_rates_go_on(step_s: int) -> None:
    @played()
    async def story(world: World) -> None:
        producer = await prepared(world, b"kept")
        await retention(world, 30)
        await time_quota(world, 1_800)
        for second in range(120):
            await producer.send(b"%d" % second)
            if second == 60:
                step(world, step_s)
            await asyncio.sleep(1)
        stats = await AdminFacade(world.broker, world.observer).topic_stats(NAME, StatsOptions())
        assert stats.msg_rate_in == pytest.approx(1.0, abs=0.1)
        assert (evicted(world), backlog(world)) == (0, 121)
        await asyncio.sleep(600)
        assert (evicted(world), backlog(world)) == (0, 121)
        log = world.broker.engine.topics[TOPIC].log
        published = [log.published_ms(at) for at in range(log.first, log.end)]
        assert published == sorted(published)
        assert len(published) == 121

    story()


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S, YEARS_S, -YEARS_S])
def test_a_jump_while_the_broker_is_down_trims_nothing(step_s: int, cut: bool) -> None:
    @played()
    async def story(world: World) -> None:
        await prepared(world, b"a", b"b")
        await retention(world, 30)
        await asyncio.sleep(60)
        await restarted(world, down_s=5, step_s=step_s, cut=cut)
        await asyncio.sleep(120)
        assert (evicted(world), backlog(world)) == (0, 2)
        log = world.broker.engine.topics[TOPIC].log
        assert (log.first, log.end) == (0, 2)

    story()
