"""Limits that change, as rows and events of the telemetry say it."""

from __future__ import annotations

import json

from headgate.base.units import NS_PER_S
from headgate.record.fields import Kind
from headgate.testing import World
from tests.unit.telemetry.records.watching import events, watch
from tests.unit.telemetry.support import NAME, limit, publish


def test_limits_that_change_are_reported_with_their_source() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        await publish(world, 1)
        client = await world.connect()
        await client.subscribe(NAME, "s")
        first = await own.after(1)
        assert events(first) == []
        assert first[Kind.LIMITER] == []
        changed_ns = own.broker.clock.wall_ns()
        await limit(own.broker, 50)
        window = await own.after(1)
        (event,) = window[Kind.EVENT]
        assert (event["event"], event["topic"], event["subscription"]) == (
            "limit_changed", NAME, "s",
        )  # fmt: skip
        assert 0 <= event["time_ns"] - changed_ns < NS_PER_S // 10
        assert json.loads(event["inputs"])["level"] == "subscription"
        assert json.loads(event["inputs"])["before"]["messages"] is None
        assert json.loads(event["outcome"]) == {
            "messages": 50, "bytes": None, "period_ns": NS_PER_S, "source": "topic policy",
        }  # fmt: skip
        (row,) = window[Kind.SUBSCRIPTION]
        assert (row["limit_subscription_messages"], row["limit_subscription_source"]) == (
            50, "topic policy",
        )  # fmt: skip
        (limiter,) = window[Kind.LIMITER]
        assert (limiter["level"], limiter["subject"]) == ("subscription", f"{NAME}|s")
        assert (limiter["limit"], limiter["limit_source"]) == (50, "topic policy")
        assert 0 <= limiter["counting_since_ns"] - changed_ns < NS_PER_S // 10
        await limit(own.broker, 50)
        assert events(await own.after(1)) == []
        await limit(own.broker, 0)
        gone = await own.after(1)
        assert events(gone) == ["limit_changed"]
        assert [row["gone"] for row in gone[Kind.LIMITER]] == [True]
        assert gone[Kind.SUBSCRIPTION][0].get("limit_subscription_messages") is None

    with World() as world:
        world.run(scenario(world))


def test_the_brokers_limit_is_everybodys() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        await publish(world, 1)
        client = await world.connect()
        await client.subscribe(NAME, "s")
        window = await own.after(1)
        (row,) = window[Kind.SUBSCRIPTION]
        source = "broker setting dispatchThrottlingRateInMsg"
        assert (row["limit_broker_messages"], row["limit_broker_source"]) == (70, source)
        (limiter,) = window[Kind.LIMITER]
        assert (limiter["level"], limiter["incarnation"]) == ("broker", 0)
        assert limiter["subject"] == own.broker.info.broker_id
        assert limiter["limit_source"] == source
        assert events(window) == []

    with World(settings={"dispatchThrottlingRateInMsg": "70"}) as world:
        world.run(scenario(world))
