"""The report on the broker itself."""

from __future__ import annotations

import asyncio

from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_it_says_what_clients_hold_and_whether_a_thread_is_stuck(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    await asyncio.sleep(5)  # memory is measured from time to time
    report = world.observer.explain_broker()
    assert report["connections"] == 1
    assert report["sentence"] == ""
    held = {each["kind"]: each["bytes"] for each in report["memory"]}
    assert 0 < held["connections"] < report["memoryMaxBytes"]
    assert [each["bytes"] for each in report["memory"]] == sorted(held.values(), reverse=True)
    assert {lane["name"] for lane in report["lanes"]} >= {"commit", "read", "upkeep", "removal"}
    assert (report["slowed"], report["closed"]) == (0, 0)


@played()
async def test_a_thread_that_does_not_answer_is_told(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    world.lanes[0].freeze()
    sending = asyncio.create_task(producer.send(b"x"))
    await asyncio.sleep(11)
    report = world.observer.explain_broker()
    assert "the commit lane has not answered for 1" in report["sentence"]
    silent_s = {lane["name"]: lane["silentS"] for lane in report["lanes"]}
    assert silent_s["commit"] > 10
    assert silent_s["read"] == 0
    world.lanes[0].thaw()
    await sending
