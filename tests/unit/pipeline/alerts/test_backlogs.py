"""An alert for each open episode, however long it lasts."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.alerts.alert import fingerprint, identity
from headgate.pipeline.alerts.backlogs import OpenBacklog, backlog_alerts, ended_ns
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from tests.unit.pipeline.alerts.folder import NOW_NS, OPEN, open_segment, segment
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, write

NEWEST = {"c1": NOW_NS}
EDGE_NS = T0 + HOUR_NS

ALIKE = "x9ThH-3J#<ozLCY^WmP!i])uY%rZz|X6"
"""Of ``persistent://evil/ns/t``, the alert of which has the fingerprint of one about :data:`NS`."""


def test_open_episodes_are_alerts_and_others_are_none(tmp_path: Path) -> None:
    rows = [
        open_segment(),
        segment(T0, T0 + 5 * MINUTE_NS, NS + "over"),
        open_segment(4, NS + "short"),
        open_segment(15, NS + "elsewhere", cluster="removed"),
        open_segment(15, NS + "parts", partition=3),
    ]
    write(tmp_path, "episodes", rows)
    alerts = backlog_alerts(str(tmp_path), NEWEST, 5 * MINUTE_NS, 9)
    assert sorted(alert.labels["topic"] for alert in alerts) == [
        NS + "parts-partition-3", NS + "slow",
    ]  # fmt: skip
    slow = next(alert for alert in alerts if alert.labels["topic"] == NS + "slow")
    assert slow.labels == {
        "alertname": "HeadgateBacklog",
        "severity": "warning",
        "cluster": "c1",
        "namespace": "public/default",
        "topic": NS + "slow",
        "subscription": "s",
    }
    assert slow.annotations["summary"] == f"s on {NS}slow has a backlog since 2025-11-21 11:05 UTC"
    assert slow.annotations["cause"] == "CONSUMER"
    assert slow.annotations["description"].startswith("A backlog since 2025-11-21 11:05 UTC")
    assert (slow.starts_ns, slow.seen_ns) == (NOW_NS - 15 * MINUTE_NS, NOW_NS)


def test_an_episode_begins_where_its_first_hour_says(tmp_path: Path) -> None:
    """Also days ago; each hour has one segment. Others that meet an hour's edge stay apart."""
    hours = 30
    rows = [segment(EDGE_NS, NOW_NS, continues_before=True, **OPEN)]
    for back in range(1, hours + 1):
        start_ns = EDGE_NS - back * HOUR_NS
        more = {"continues_after": True, "continues_before": back < hours, "ending": "continues"}
        rows.append(segment(start_ns, start_ns + HOUR_NS, **more))
        rows.append(segment(start_ns, start_ns + HOUR_NS, NS + "other", **more))
    write(tmp_path, "episodes", rows)
    (alert,) = backlog_alerts(str(tmp_path), NEWEST, 0, 9)
    assert alert.starts_ns == EDGE_NS - hours * HOUR_NS


def test_the_begin_that_retention_dropped_is_the_first_hour(tmp_path: Path) -> None:
    write(tmp_path, "episodes", [segment(EDGE_NS, NOW_NS, continues_before=True, **OPEN)])
    (alert,) = backlog_alerts(str(tmp_path), NEWEST, 0, 9)
    assert alert.starts_ns == EDGE_NS


def test_of_very_many_the_begin_is_looked_for_in_the_most_severe(tmp_path: Path) -> None:
    """The others have none: their hour's edge would look like the begin of another backlog."""
    more = {"continues_after": True, "ending": "continues"}
    rows = []
    for topic, age_ns in ((NS + "old", HOUR_NS), (NS + "young", MINUTE_NS)):
        ages = {"oldest_age_max_ns": age_ns}
        rows.append(segment(EDGE_NS, NOW_NS, topic, continues_before=True, **OPEN, **ages))
        rows.append(segment(T0, EDGE_NS, topic, **more))
    write(tmp_path, "episodes", rows)
    alerts = backlog_alerts(str(tmp_path), NEWEST, HOUR_NS, 1)
    assert {alert.labels["topic"]: alert.starts_ns for alert in alerts} == {
        NS + "old": T0, NS + "young": None,
    }  # fmt: skip


def test_of_two_incarnations_of_a_topic_the_later_one_counts(tmp_path: Path) -> None:
    rows = [open_segment(15), open_segment(6, incarnation=2)]
    write(tmp_path, "episodes", rows)
    (alert,) = backlog_alerts(str(tmp_path), NEWEST, 0, 9)
    assert alert.starts_ns == NOW_NS - 6 * MINUTE_NS


def test_a_name_with_the_fingerprint_of_another_alert_hides_none(tmp_path: Path) -> None:
    """Alertmanager's hash can be aimed at: the name of this subscription was found in a minute."""
    rows = [
        open_segment(15),
        open_segment(6, "persistent://evil/ns/t", subscription=ALIKE),
        segment(T0, T0 + 5 * MINUTE_NS, "persistent://evil/ns/t", subscription=ALIKE),
    ]
    write(tmp_path, "episodes", rows)
    alerts = backlog_alerts(str(tmp_path), NEWEST, 0, 9)
    assert {alert.labels["namespace"] for alert in alerts} == {"public/default", "evil/ns"}
    assert len({fingerprint(alert.labels) for alert in alerts}) == 1
    own = next(alert for alert in alerts if alert.labels["subscription"] == "s")
    before = OpenBacklog(own.labels, T0, T0)
    assert ended_ns(str(tmp_path), [before], NOW_NS) == {}


def test_without_telemetry_or_a_table_there_is_none(tmp_path: Path) -> None:
    write(tmp_path, "episodes", [open_segment()])
    assert backlog_alerts(str(tmp_path), {}, 0, 9) == []
    with pytest.raises(InputError, match="no table episodes"):
        backlog_alerts(str(tmp_path / "none"), NEWEST, 0, 9)


def test_the_end_of_a_backlog_is_the_first_one_after_its_begin(tmp_path: Path) -> None:
    rows = [
        segment(T0, T0 + 5 * MINUTE_NS),
        segment(T0 + 20 * MINUTE_NS, T0 + 40 * MINUTE_NS),
        segment(T0 + 50 * MINUTE_NS, EDGE_NS, continues_after=True, ending="continues"),
        open_segment(8),
    ]
    write(tmp_path, "episodes", rows)
    (alert,) = backlog_alerts(str(tmp_path), NEWEST, 0, 9)
    before = OpenBacklog(alert.labels, T0 + 20 * MINUTE_NS, T0 + 30 * MINUTE_NS)
    key = identity(alert.labels)
    assert ended_ns(str(tmp_path), [before], NOW_NS) == {key: T0 + 40 * MINUTE_NS}
    other = OpenBacklog({**alert.labels, "topic": "gone"}, T0, T0)
    assert ended_ns(str(tmp_path), [other], NOW_NS) == {}
    assert ended_ns(str(tmp_path / "none"), [], NOW_NS) == {}
