"""The adaptive controller's figures: in the order of their series, and absent while it is off."""

from __future__ import annotations

import asyncio

from headgate.telemetry.adaptive_figures import broker_figures, topic_figures
from headgate.telemetry.prometheus.series.adaptive import ADAPTIVE_SERIES, ADAPTIVE_TOPIC_SERIES
from headgate.testing import World
from tests.unit.broker.adaptive_play import (
    ON,
    Publisher,
    Reader,
    change_setting,
    controller,
    live,
    set_quota,
)
from tests.unit.broker.playing import TOPIC, played
from tests.unit.telemetry.support import read_page, rendered, value_of


async def page_of(world: World) -> list[object]:
    return list(read_page(await rendered(world.broker))[1])


@played()
async def test_there_are_none_while_it_is_off(world: World) -> None:
    Publisher(world, await world.connect(), TOPIC, 10)
    await asyncio.sleep(3)
    _, samples = read_page(await rendered(world.broker))
    assert not [s for s in samples if s.name.startswith("headgate_adaptive_")]
    assert topic_figures(world.broker.settings, await live(world)) is None


@played(settings=ON)
async def test_the_brokers_and_on_demand_each_topics(world: World) -> None:
    topic = await set_quota(world, 1_000_000)
    Reader(await world.connect(), TOPIC, 50)
    await asyncio.sleep(0.1)
    Publisher(world, await world.connect(), TOPIC, 400)
    while topic.publishing.adaptive_limit is None:
        await asyncio.sleep(0.1)
    _, samples = read_page(await rendered(world.broker))
    for series, figure in zip(ADAPTIVE_SERIES, broker_figures(controller(world)), strict=True):
        assert value_of(samples, series.name) == round(figure, 3)
    assert value_of(samples, "headgate_adaptive_active_topics") == 1
    assert value_of(samples, "headgate_adaptive_activations_total") == 1
    assert value_of(samples, "headgate_adaptive_controller_interval") == 1_000
    assert not [s for s in samples if s.name.startswith("headgate_adaptive_topic")]
    await change_setting(world, "adaptivePublisherThrottlingPerTopicMetricsEnabled", "true")
    _, samples = read_page(await rendered(world.broker))
    figures = topic_figures(world.broker.settings, topic)
    assert figures is not None
    for series, figure in zip(ADAPTIVE_TOPIC_SERIES, figures, strict=True):
        assert abs(value_of(samples, series.name, topic=TOPIC) - figure) < 0.001
    active, natural, effective, memory, backlog, reduction = figures
    assert (active, memory) == (1, 0)
    assert 300 < natural < 500
    assert effective < natural
    assert backlog > 0
    assert abs(reduction - (1 - effective / natural)) < 0.001
