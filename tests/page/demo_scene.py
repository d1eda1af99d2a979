"""The situations of ``headgate demo`` in virtual time, so that a browser sees them in each run.

All rates, limits and queues are a fifth of the demo's: what holds a backlog is the same, and
fewer messages cost less.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Final

from headgate.base.positions import Position
from headgate.demo.admin import limit_calls, quota_calls, topic_calls
from headgate.demo.pace import PhasedPace
from headgate.demo.scenes import SCENES, SETTINGS
from headgate.demo.scenes import Scene as Situation
from headgate.testing import SimClient, SimConsumer, World
from headgate.wire.codes import SubscriptionType
from tests.page.scene import TICK_S, Scene, nothing

PLAYED_S: Final = 75
OLD_S: Final = 15
"""After so long the broker's publish rate does not have the old backlog in it any more."""
SCALE: Final = 5
BODY: Final = b"x" * 200


def scaled(situation: Situation) -> Situation:
    """A situation at a fifth of its rates."""
    consume = situation.consume_per_s
    return replace(
        situation,
        publish_per_s=situation.publish_per_s // SCALE,
        then_per_s=tuple(rate // SCALE for rate in situation.then_per_s),
        consume_per_s=None if consume is None else consume // SCALE,
        queue_size=situation.queue_size // SCALE,
        limit_per_s=situation.limit_per_s // SCALE,
        pending_max=None if situation.pending_max is None else situation.pending_max // SCALE,
    )


def demo_cluster(cluster: str, played_s: float = PLAYED_S) -> Scene:
    """One broker of the demo, ``played_s`` after its limits were set."""
    situations = [scaled(each) for each in SCENES if each.cluster == cluster]
    scene = Scene(nothing, settings={"clusterName": cluster, **SETTINGS.get(cluster, {})})
    scene.play(partial(_build, scene, situations, played_s))
    return scene


async def _build(scene: Scene, situations: list[Situation], played_s: float, world: World) -> None:
    client = await world.connect(client_version="Pulsar-CPP-v3.9.0")
    for situation in situations:
        for call in topic_calls(situation):
            await scene.must(call.method, call.path, call.body)
        for topic in situation.topic_names() if situation.relative else ():
            producer = await client.producer(topic)
            for _ in range(situation.old_backlog(PLAYED_S)):
                producer.send_nowait(BODY)
            await producer.send(BODY)
            await producer.close()
    await asyncio.sleep(OLD_S)
    for situation in situations:
        for call in limit_calls(situation, situation.limit_per_s):
            await scene.must(call.method, call.path, call.body)
        for call in quota_calls(situation, PLAYED_S):
            await scene.must(call.method, call.path, call.body)
    for situation in situations:
        for topic in situation.topic_names():
            await _begin(world, client, situation, topic)
    await asyncio.sleep(played_s)


async def _begin(world: World, client: SimClient, situation: Situation, topic: str) -> None:
    for name in situation.subscriptions if situation.has_consumer else ():
        consumer = await client.subscribe(
            topic, name, kind=SubscriptionType.SHARED, queue_size=situation.queue_size,
            name=f"{name}-1",
        )  # fmt: skip
        world.loop.create_task(_read(consumer, situation.consume_per_s))
    world.loop.create_task(_publish(world, client, situation, topic))


async def _read(consumer: SimConsumer, per_s: int | None) -> None:
    while True:
        message = await consumer.receive()
        if per_s is not None:
            await asyncio.sleep(1 / per_s)
        consumer.ack_nowait(message.position)


async def _publish(world: World, client: SimClient, situation: Situation, topic: str) -> None:
    producer = await client.producer(topic, name=f"{topic.rpartition('/')[2]}-service")
    pace = PhasedPace(situation.rates_per_s, situation.phase_s(PLAYED_S), world.now_s)
    waiting: set[asyncio.Future[Position]] = set()
    while True:
        for _ in range(pace.due(world.now_s)):
            if situation.pending_max is None or len(waiting) < situation.pending_max:
                receipt = producer.send_nowait(BODY)
                waiting.add(receipt)
                receipt.add_done_callback(waiting.discard)
        await asyncio.sleep(TICK_S)
