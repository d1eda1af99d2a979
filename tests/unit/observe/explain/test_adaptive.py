"""The report on the adaptive controller."""

from __future__ import annotations

import asyncio

import pytest

from headgate.control import adaptive
from headgate.testing import World
from tests.unit.broker.adaptive_play import ON, Publisher, Reader, set_quota
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_without_a_controller_the_report_says_so(world: World) -> None:
    report = world.observer.explain_adaptive(5)
    assert report["enabled"] is False
    assert report["law"] is None
    assert report["decisions"] == []


@played(settings=ON)
async def test_the_latest_decisions_come_first(world: World) -> None:
    await set_quota(world, 3_000_000)
    Reader(await world.connect(), TOPIC, 50)
    Publisher(world, await world.connect(), TOPIC, 400)
    await asyncio.sleep(15)
    report = world.observer.explain_adaptive(5)
    assert (report["enabled"], report["law"], report["observeOnly"]) == (True, "pressure", False)
    assert (report["active"], report["activations"]) == (1, 1)
    assert report["failures"] == 0
    times = [decision["at"] for decision in report["decisions"]]
    assert times == sorted(times, reverse=True)
    assert 1 < len(times) <= 5
    assert len(world.observer.explain_adaptive(1)["decisions"]) == 1
    assert report["lastEvaluation"] is not None


@played(settings=ON)
async def test_topics_with_the_oldest_decisions_are_forgotten(world: World) -> None:
    throttle = world.broker.adaptive
    assert throttle is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptive, "TOPICS_MAX", 1)
        for name in ("a", "b"):
            await set_quota(world, 300_000, topic=f"persistent://public/default/{name}")
            Reader(await world.connect(), f"persistent://public/default/{name}", 50)
            Publisher(world, await world.connect(), f"persistent://public/default/{name}", 400)
        await asyncio.sleep(15)
        assert len({topic for topic, _ in throttle.latest_decisions(100)}) == 1
