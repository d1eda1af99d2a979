"""F7: the disk takes 200 ms for a sync, or stands still for 10 s.

Receipts come late and in order, keep-alives are answered, what waits stays within its limit, and
the health check names the cause.
"""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.units import MIB, NS_PER_MS
from headgate.facade.admin_facade import AdminFacade
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

SYNC_NS = 200 * NS_PER_MS
BODY_BYTES = 10_000
LOAD_S = 30
SETTINGS = {"keepAliveIntervalSeconds": "5", "maxMessagePublishBufferSizeInMB": "1"}


@pytest.mark.parametrize("hang_s", [0, 10])
def test_receipts_are_late_and_right_and_nobody_is_cut_off(hang_s: int) -> None:
    @played(settings=SETTINGS)
    async def story(world: World) -> None:
        commits = world.lanes[0]
        commits.latency_ns_min = commits.latency_ns_max = SYNC_NS
        clients = [await world.connect() for _ in range(3)]
        producers = [await client.producer(TOPIC) for client in clients]
        consumer = await (await world.connect()).subscribe(TOPIC, "s")
        waiting: list[list[asyncio.Future[object]]] = [[] for _ in producers]
        unstored_bytes = 0
        if hang_s:
            commits.freeze()
            world.loop.call_later(hang_s, commits.thaw)
        for _ in range(LOAD_S * 10):
            for producer, receipts in zip(producers, waiting, strict=True):
                receipts += [producer.send_nowait(bytes(BODY_BYTES)) for _ in range(5)]
            await asyncio.sleep(0.1)
            unstored_bytes = max(unstored_bytes, world.broker.log.unstored_bytes)
        state = await AdminFacade(world.broker, world.observer).check_health()
        assert state.startswith("the disk is slow: a commit takes 2")
        for receipts in waiting:
            positions = await asyncio.gather(*receipts)
            assert positions == sorted(set(positions))
        assert all(client.is_open for client in clients)
        assert 100_000 < unstored_bytes < 3 * MIB
        for _ in range(3 * 5 * LOAD_S * 10):
            await asyncio.wait_for(consumer.receive(), 60)

    story()
