"""The agent's page of metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.agent import metrics, series
from headgate.agent.metrics import (
    ClusterCounts,
    ClusterPage,
    PortCertificate,
    SinkCounts,
    metrics_text,
)
from headgate.agent.quota_forecast import Level
from headgate.flow.account.account import Cell
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.telemetry.prometheus.series.quotas import BREACH_SERIES
from headgate.telemetry.prometheus.series.subscriptions import STATE_SERIES
from tests.unit.agent.figures import TOPIC, subscription, topic


def counts(name: str = "prod") -> ClusterCounts:
    return ClusterCounts(name, 1.5, 7, {"stats": 2}, 9, 50, 3, 0)


def page(*pages: ClusterPage) -> list[str]:
    return "".join(metrics_text(pages)).splitlines()


def test_states_have_the_brokers_name_and_labels() -> None:
    lines = page(
        ClusterPage(
            counts(),
            (),
            [
                topic(50),
                subscription(50, cell=Cell.TOPIC_BYTES_BUSY, name='a"b'),
                subscription(50, cell=Cell.CAUGHT_UP, name="quiet"),
            ],
        )
    )
    found = [line for line in lines if "state_seconds" in line]
    assert found == [
        "# TYPE headgate_subscription_state_seconds_total counter",
        'headgate_subscription_state_seconds_total{cluster="prod",namespace="acme/orders",'
        f'topic="{TOPIC}",subscription="a\\"b",state="throttled_topic",dimension="bytes",'
        'consumer="busy"} 50.000',
    ]


@pytest.mark.parametrize(
    ("own", "of_broker"),
    [(series.STATE_SECONDS, STATE_SERIES), (series.SECONDS_TO_BREACH, BREACH_SERIES)],
)
def test_shared_series_are_those_of_a_broker(own: object, of_broker: object) -> None:
    for name in ("name", "type", "labels", "unit"):
        assert getattr(own, name) == getattr(of_broker, name)


def test_quotas_name_the_subscription_and_only_what_approaches_has_a_sample() -> None:
    levels = [
        Level(TOPIC, QuotaType.SIZE, 100.0, 60.0, "billing", None, 40.0, 60.0),
        Level(TOPIC, QuotaType.TIME, 100.0, 60.0, None, None, None),
    ]
    lines = page(ClusterPage(counts(), levels, ()))
    labels = f'{{cluster="prod",namespace="acme/orders",topic="{TOPIC}",quota_type="size"'
    assert f"headgate_backlog_quota_seconds_to_breach{labels}}} 40.000" in lines
    assert f'headgate_agent_quota_subscription{labels},subscription="billing"}} 1' in lines
    assert f"headgate_agent_quota_look_period_seconds{labels}}} 60.000" in lines
    assert not [line for line in lines if 'quota_type="time"' in line]


def test_of_many_quotas_those_that_break_soonest_have_series(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "QUOTAS_MAX", 2)
    levels = [
        Level(TOPIC, QuotaType.SIZE, 100.0, 60.0, f"s{left}", None, float(left))
        for left in (5, 3, 4)
    ]
    lines = page(ClusterPage(counts(), levels, ()))
    found = [line for line in lines if line.startswith("headgate_agent_quota_subscription")]
    assert [line.partition('subscription="')[2] for line in found] == ['s3"} 1', 's4"} 1']


def test_each_cluster_has_its_own_figures_under_one_type_line() -> None:
    stored = counts("test")
    stored.sinks = {"files": SinkCounts(4, 400, 1, 2)}
    stored.files, stored.folder_bytes = 4, 400
    lines = page(ClusterPage(counts(), (), ()), ClusterPage(stored, (), ()))
    assert lines.count("# TYPE headgate_agent_looks_total counter") == 1
    assert 'headgate_agent_looks_total{cluster="prod"} 7' in lines
    assert 'headgate_agent_last_look_age_seconds{cluster="test"} 1.500' in lines
    assert 'headgate_agent_look_errors_total{cluster="prod",kind="stats"} 2' in lines
    assert 'headgate_agent_records_dropped_total{cluster="test",sink="files"} 2' in lines
    assert [line for line in lines if "folder_bytes{" in line] == [
        'headgate_agent_record_folder_bytes{cluster="test"} 400'
    ]


def test_subscriptions_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "SUBSCRIPTIONS_MAX", 2)
    figures = [subscription(50, name=f"s{n}") for n in range(5)]
    lines = page(ClusterPage(counts(), (), figures))
    assert 'headgate_agent_left_out_subscriptions{cluster="prod"} 3' in lines
    assert len([line for line in lines if line.startswith(series.STATE_SECONDS.name)]) == 2


def test_very_many_subscriptions_of_a_tenant_take_no_series_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client may have thousands on one topic: no other tenant had an alert by its own."""
    monkeypatch.setattr(metrics, "SUBSCRIPTIONS_MAX", 10)
    flood = [
        replace(subscription(50, name=f"flood{n}"), topic="persistent://evil/ns/t")
        for n in range(50)
    ]
    own = [subscription(50, name=f"own{n}") for n in range(3)]
    last = [replace(subscription(50, name="last"), topic="persistent://other/ns/t")]
    for figures in ([*flood, *own, *last], [*own, *flood, *last], [*last, *own, *flood]):
        lines = page(ClusterPage(counts(), (), figures))
        assert 'headgate_agent_left_out_subscriptions{cluster="prod"} 44' in lines
        found = [line for line in lines if line.startswith(series.STATE_SECONDS.name)]
        assert len(found) == 10
        for name in ("own0", "own1", "own2", "last", "flood5"):
            assert any(f'subscription="{name}"' in line for line in found)


def test_very_many_reached_quotas_of_a_tenant_take_no_series_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A topic with very many partitions and a quota of a byte was all that the alerts saw."""
    monkeypatch.setattr(metrics, "QUOTAS_MAX", 10)
    flood = [
        Level(f"persistent://evil/ns/t-partition-{n}", QuotaType.SIZE, 1.0, 9.0, "s", None, 0.0)
        for n in range(50)
    ]
    own = [Level(TOPIC, QuotaType.SIZE, 100.0, 60.0, "billing", None, 40.0)]
    for levels in ([*flood, *own], [*own, *flood]):
        lines = page(ClusterPage(counts(), levels, ()))
        found = [line for line in lines if line.startswith(series.QUOTA_SUBSCRIPTION.name)]
        assert len(found) == 10
        assert any(f'topic="{TOPIC}"' in line for line in found)


def test_all_clusters_together_have_a_bound_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the port lets an answer be would not be served at all."""
    monkeypatch.setattr(metrics, "STATES_BYTES_MAX", 40_000)
    monkeypatch.setattr(metrics, "QUOTAS_BYTES_MAX", 30_000)
    long = "persistent://evil/ns/" + "\N{LINE SEPARATOR}" * 500
    flood = [replace(subscription(50, name=f"{n}"), topic=long) for n in range(90)]
    level = Level(long, QuotaType.SIZE, 10.0, 9.0, "s" * 500, None, 1.0, 5.0, None)
    pages = [ClusterPage(counts(f"c{n}"), [level] * 90, flood) for n in range(3)]
    own = ClusterPage(counts(), [level._replace(topic=TOPIC)], [subscription(50)])
    text = "".join(metrics_text([*pages, own]))
    assert len(text.encode()) < 80_000
    lines = text.split("\n")
    for name in (series.STATE_SECONDS.name, series.QUOTA_SUBSCRIPTION.name):
        assert any(line.startswith(f'{name}{{cluster="prod"') for line in lines)
    left_out = [line for line in lines if line.startswith(series.LEFT_OUT.name)]
    assert left_out[-1].endswith('{cluster="prod"} 0')
    assert sum(int(line.rpartition(" ")[2]) for line in left_out) > 200


def test_the_ports_certificate_belongs_to_no_cluster() -> None:
    lines = "".join(metrics_text([], PortCertificate(1_800_000_000, 2, ""))).splitlines()
    assert "headgate_agent_tls_certificate_expires_timestamp_seconds 1800000000" in lines
    assert "headgate_agent_tls_reload_failures_total 2" in lines
    assert not any("tls" in line for line in page(ClusterPage(counts(), (), ())))
