"""What is left of topics where they have no series of their own: sums for each namespace."""

from __future__ import annotations

from headgate.base.sliced import at_once
from headgate.telemetry.prometheus.namespace_sums import NamespaceSums
from headgate.telemetry.prometheus.page import number
from headgate.telemetry.prometheus.series.catalogue import SERIES
from headgate.telemetry.prometheus.series.namespaces import (
    SUMMED_SUBSCRIPTION_NAMES,
    SUMMED_TOPIC_NAMES,
)
from headgate.telemetry.prometheus.values import Totals, topic_values
from headgate.testing import World
from tests.unit.telemetry.support import publish


def test_topics_of_a_namespace_are_added_up() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        sums = NamespaceSums()
        for name, count in (("a", 3), ("b", 4)):
            topic = await publish(world, count, f"persistent://public/default/{name}")
            at_once(sums.add(topic, at_once(topic_values(topic, Totals()))))
        acts = {"public/default": [5, 7], "public/gone": [1, 0]}
        labels = '{{namespace="{}"'.format
        samples = sums.samples(acts, labels, number)
        found = dict(samples)
        ns = 'namespace="public/default"'
        assert found["pulsar_topics_count"] == f"pulsar_topics_count{{{ns}}} 2"
        assert found["pulsar_in_messages_total"] == f"pulsar_in_messages_total{{{ns}}} 7"
        name = "pulsar_msg_backlog"
        assert found[name] == f'{name}{{{ns},remote_cluster="local"}} 0'
        name = "pulsar_storage_backlog_quota_exceeded_evictions_total"
        told = [line for each, line in samples if each == name]
        assert f'{name}{{{ns},quota_type="time"}} 7' in told
        assert f'{name}{{namespace="public/gone",quota_type="size"}} 1' in told
        assert len(told) == 4

    with World() as world:
        world.run(scenario(world))


def test_what_is_summed_are_series_of_the_page() -> None:
    names = {series.name for series in SERIES}
    assert names >= SUMMED_TOPIC_NAMES | SUMMED_SUBSCRIPTION_NAMES
