"""The alerts about backlogs, played on the series of a broker in virtual time.

Half an hour of known situations is sampled each minute as ``/metrics`` gives it. Which alerts fire
then must be what explain says of each subscription.
"""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
from devkit.promtool import known_promtool

from headgate.base.sliced import at_once
from headgate.base.units import NS_PER_S
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.account.account import LABELS
from headgate.telemetry.prometheus.series.subscriptions import STATE_SERIES, SUBSCRIPTION_SERIES
from headgate.telemetry.prometheus.series.topics import TOPIC_SERIES
from headgate.telemetry.prometheus.values import (
    Totals,
    subscription_values,
    topic_values,
)
from headgate.telemetry.records.subjects import cells_of
from tests.unit.broker.virtual import VirtualBroker

RULES = Path(__file__).parents[2] / "deploy/prometheus/backlogs.rules.yml"
MINUTES = 30
PUBLISHED_PER_S = 20
FAST = 1e6
NAMESPACE = "acme/shop"

ALERT_OF = {
    "CONSUMER": "ConsumerIsBottleneck",
    "NO_CONSUMER": "NoConsumer",
    "THROTTLED_SUBSCRIPTION": "LimitHoldsHungryConsumer",
    "THROTTLED_TOPIC": "LimitHoldsHungryConsumer",
    "NONE": None,
}

Series = dict[str, list[float]]


def situations(broker: VirtualBroker) -> dict[tuple[str, str], str]:
    """Subscriptions by topic and name, with the cause of each backlog."""

    def topic(name: str) -> Topic:
        return broker.topic(f"persistent://{NAMESPACE}/{name}", PUBLISHED_PER_S)

    broker.client(broker.subscription(topic("limited"), limit=10), FAST)
    broker.client(broker.subscription(topic("shared-limit")), FAST)
    broker.limit_topic(topic("shared-limit"), 8)
    broker.client(broker.subscription(topic("slow")), 8, queue=100)
    broker.client(broker.subscription(topic("slow-under-limit"), limit=15), 8, queue=100)
    broker.client(broker.subscription(topic("hangs")), 0, queue=100)
    broker.subscription(topic("gone"))
    broker.client(broker.subscription(topic("fine")), FAST)
    broker.client(broker.subscription(topic("both"), "slow"), 8, queue=100)
    broker.client(broker.subscription(topic("both"), "fine"), FAST)
    return {
        ("limited", "s"): "THROTTLED_SUBSCRIPTION",
        ("shared-limit", "s"): "THROTTLED_TOPIC",
        ("slow", "s"): "CONSUMER",
        ("slow-under-limit", "s"): "CONSUMER",
        ("hangs", "s"): "CONSUMER",
        ("gone", "s"): "NO_CONSUMER",
        ("fine", "s"): "NONE",
        ("both", "slow"): "CONSUMER",
        ("both", "fine"): "NONE",
    }


class Scrapes:
    """The samples of each series, one a minute."""

    def __init__(self, broker: VirtualBroker) -> None:
        self.series: Series = {}
        self._broker = broker
        self._minute = 0
        self._sent: dict[str, int] = {}

    def take(self) -> None:
        """Add a scrape."""
        for topic in self._broker.engine.topics.values():
            of_topic = f'cluster="c",namespace="{NAMESPACE}",topic="{topic.name.full}"'
            values = at_once(topic_values(topic, Totals()))
            figures = {each.name: value for each, value in zip(TOPIC_SERIES, values, strict=True)}
            # What the virtual broker publishes comes from no producer, and no meter counts it.
            figures["pulsar_storage_write_rate"] = PUBLISHED_PER_S
            for name, value in figures.items():
                self._add(name, of_topic, value)
            for subscription in topic.subscriptions.values():
                self._take(subscription, f'{of_topic},subscription="{subscription.name}"')
        self._minute += 1

    def _take(self, subscription: Subscription, labels: str) -> None:
        values = subscription_values(subscription)
        figures = {each.name: n for each, n in zip(SUBSCRIPTION_SERIES, values, strict=True)}
        sent = subscription.messages_sent
        figures["pulsar_subscription_msg_rate_out"] = (sent - self._sent.get(labels, 0)) / 60
        self._sent[labels] = sent
        for name, value in figures.items():
            self._add(name, labels, value)
        for cell, spent_ns in enumerate(cells_of(subscription.account, self._broker.engine.now_ns)):
            if spent_ns:
                of = LABELS[cell]
                state = (
                    f'state="{of.state.value}",dimension="{of.dimension}",consumer="{of.consumer}"'
                )
                self._add(STATE_SERIES.name, f"{labels},{state}", spent_ns / NS_PER_S)

    def _add(self, name: str, labels: str, value: float) -> None:
        found = self.series.setdefault(f"{name}{{{labels}}}", [])
        # A series that begins later has no samples before.
        found += [math.nan] * (self._minute - len(found)) + [value]


@pytest.fixture(scope="module")
def played() -> tuple[Series, dict[tuple[str, str], str], dict[tuple[str, str], str]]:
    """The series, the cause of each backlog, and what explain says it is."""
    broker = VirtualBroker()
    scrapes, causes = Scrapes(broker), situations(broker)
    for _ in range(MINUTES + 1):
        scrapes.take()
        broker.run(60)
    verdicts = {
        (topic.name.local, subscription.name): broker.report(subscription).verdict
        for topic in broker.engine.topics.values()
        for subscription in topic.subscriptions.values()
    }
    return scrapes.series, causes, verdicts


def test_explain_names_the_causes(played: Any) -> None:
    _, causes, verdicts = played
    assert verdicts == causes


def test_exactly_the_alerts_of_these_causes_fire(played: Any, tmp_path: Path) -> None:
    promtool = known_promtool()
    assert promtool is not None, "./dev test alerts fetches promtool"
    series, causes, _ = played
    fired = [
        f'{{alertname="{ALERT_OF[cause]}",topic="persistent://{NAMESPACE}/{topic}",'
        f'subscription="{subscription}"}}'
        for (topic, subscription), cause in causes.items()
        if ALERT_OF[cause]
    ]
    query = 'sum by (alertname, topic, subscription) (ALERTS{alertstate="firing"})'
    path = tmp_path / "simulated.test.yml"
    # JSON is YAML.
    path.write_text(
        json.dumps({
            "rule_files": [str(RULES)],
            "evaluation_interval": "1m",
            "tests": [{
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": " ".join(map(_value, values))}
                    for name, values in series.items()
                ],
                "promql_expr_test": [{
                    "expr": query,
                    "eval_time": f"{MINUTES}m",
                    "exp_samples": [{"labels": labels, "value": 1} for labels in fired],
                }],
            }],
        })
    )  # fmt: skip
    done = subprocess.run(
        [str(promtool), "test", "rules", str(path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _value(value: float) -> str:
    return "_" if math.isnan(value) else f"{value:.3f}"
