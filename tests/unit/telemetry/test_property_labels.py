"""Properties of topics as labels of their series."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.base.metric_labels import METRIC_LABEL_CHARACTERS_MAX, RESERVED_LABELS
from headgate.base.names import NamespaceName, TopicName, parse_topic
from headgate.metadata.policies import NamespacePolicies
from headgate.policy.settings import Settings
from headgate.telemetry.prometheus.series.catalogue import SERIES
from headgate.telemetry.property_labels import PropertyLabels
from headgate.testing import World
from tests.unit.telemetry.support import NAME, publish, read_page, rendered

PROPERTIES = {"team": 'a"b', "tier": "x" * 200, "secret": "s"}
ALLOWED = "tier, team,none,team"


class Known:
    """Topics with properties, in namespaces with a policy."""

    def __init__(self, properties: Mapping[str, str], keys: tuple[str, ...] | None = None) -> None:
        self._properties = properties
        self._policies = NamespacePolicies(allowed_topic_property_keys_for_metrics=keys)

    def topic_properties(self, topic: TopicName) -> Mapping[str, str]:
        return self._properties

    def namespace_policies(self, namespace: NamespaceName) -> NamespacePolicies:
        return self._policies


def test_only_allowed_properties_are_labels() -> None:
    settings = Settings(allowedTopicPropertyKeysForMetrics=ALLOWED)
    topic = parse_topic("t")
    assert PropertyLabels(settings, Known(PROPERTIES, ("team",))).of(topic) == {}
    settings.exposeCustomTopicMetricLabelsEnabled = True
    labels = PropertyLabels(settings, Known(PROPERTIES)).of(topic)
    assert labels == {"team": 'a"b', "tier": "x" * METRIC_LABEL_CHARACTERS_MAX}
    assert PropertyLabels(settings, Known({})).of(topic) == {}


def test_a_namespace_may_allow_others_or_none() -> None:
    settings = Settings(
        allowedTopicPropertyKeysForMetrics=ALLOWED, exposeCustomTopicMetricLabelsEnabled=True
    )
    topic = parse_topic("t")
    labels = PropertyLabels(settings, Known(PROPERTIES, ("secret", "none")))
    assert [labels.of(topic), labels.of(topic)] == [{"secret": "s"}] * 2
    assert PropertyLabels(settings, Known(PROPERTIES, ())).of(topic) == {}


def test_no_label_of_a_series_is_allowed() -> None:
    assert {label for series in SERIES for label in series.labels} <= RESERVED_LABELS


def test_series_of_a_topic_and_its_subscriptions_have_them() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 2)
        client = await world.connect()
        await client.subscribe(NAME, "s")
        plan = broker.catalog.plan_topic_properties(parse_topic(NAME), {"team": "red"})
        await broker.commit(plan)
        _, before = read_page(await rendered(broker))
        assert all("team" not in sample.labels for sample in before)
        broker.settings.exposeCustomTopicMetricLabelsEnabled = True
        broker.settings.allowedTopicPropertyKeysForMetrics = "team"
        _, samples = read_page(await rendered(broker))
        of_topic = [sample for sample in samples if sample.labels.get("topic") == NAME]
        assert of_topic
        assert all(sample.labels["team"] == "red" for sample in of_topic)
        assert any("subscription" in sample.labels for sample in of_topic)
        assert all("team" not in s.labels for s in samples if s not in of_topic)

    with World() as world:
        world.run(scenario(world))
