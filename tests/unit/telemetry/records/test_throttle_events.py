"""Throttling, as events of the telemetry say it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from headgate.base.units import NS_PER_S
from headgate.record.fields import EVENT_NAMES, Kind
from headgate.telemetry.records import limit_events, quota_events, throttle_events
from headgate.testing import World
from tests.unit.telemetry.records.watching import watch
from tests.unit.telemetry.support import NAME, limit, publish


def test_throttling_is_reported_by_windows_not_by_waits() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        await publish(world, 1)
        client = await world.connect()
        consumer = await client.subscribe(NAME, "s")
        await limit(own.broker, 10)
        await own.after(1)
        began_ns = own.ended_ns
        await publish(world, 40)
        windows = [await own.after(1) for _ in range(7)]
        told = [event for window in windows for event in window[Kind.EVENT]]
        assert [event["event"] for event in told] == ["throttle_began", "throttle_ended"]
        began, ended = told
        assert began["time_ns"] == began_ns
        assert ended["time_ns"] - began_ns in range(3 * NS_PER_S, 6 * NS_PER_S)
        inputs = json.loads(began["inputs"])
        assert (inputs["level"], inputs["dimension"]) == ("subscription", "messages")
        assert (inputs["messages"], inputs["source"]) == (10, "topic policy")
        assert json.loads(began["outcome"]) == {"consumer": "hungry"}
        assert len(consumer.queue) == 41
        limiters = [row for window in windows for row in window[Kind.LIMITER]]
        assert limiters[0]["waiter_1"] == "s"
        assert limiters[-1]["offered"] == limiters[-1]["granted"] == 40
        granted = [row["granted"] for row in limiters]
        assert granted == sorted(granted)

    with World() as world:
        world.run(scenario(world))


def test_throttling_does_not_begin_before_its_subscription() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        await publish(world, 40)
        await limit(own.broker, 10)
        await asyncio.sleep(1)
        client = await world.connect()
        await client.subscribe(NAME, "s")
        window = await own.after(1)
        (row,) = window[Kind.SUBSCRIPTION]
        told = [event for event in window[Kind.EVENT] if event["event"] == "throttle_began"]
        assert [event["time_ns"] for event in told] == [row["counting_since_ns"]]

    with World() as world:
        world.run(scenario(world))


def test_event_names_are_those_of_the_record() -> None:
    source = "".join(
        Path(module.__file__).read_text()
        for module in (limit_events, quota_events, throttle_events)
    )
    told = set(re.findall(r'"(limit_changed|throttle_\w+|quota_\w+|eviction)"', source))
    assert told == {
        "limit_changed", "throttle_began", "throttle_ended",
        "quota_exceeded", "quota_released", "eviction",
    }  # fmt: skip
    assert told < set(EVENT_NAMES)
