"""A flood of alerts is bounded, the most severe first."""

from __future__ import annotations

from headgate.pipeline.alerts.alert import CRITICAL, WARNING, Alert, named
from headgate.pipeline.alerts.selection import LEFT_OUT, selected


def alert(name: str, severity: str = WARNING, weight: float = 0.0) -> Alert:
    return Alert(named("A", severity, topic=name), {}, None, 0, weight)


def topics(alerts: list[Alert]) -> list[str]:
    return [alert.labels.get("topic", alert.labels["alertname"]) for alert in alerts]


def test_few_alerts_are_all_there_in_the_order_of_severity() -> None:
    given = [alert("light"), alert("heavy", weight=9), alert("full", CRITICAL)]
    assert topics(selected(given, (), 3, 7)) == ["full", "heavy", "light"]


def test_of_ten_thousand_the_most_severe_are_sent_and_one_counts_the_rest() -> None:
    given = [alert(f"t{number}", weight=number) for number in range(10_000)]
    found = selected([*given, alert("full", CRITICAL)], (), 500, 7)
    assert len(found) == 501
    assert topics(found)[:2] == ["full", "t9999"]
    assert found[-1].labels == {"alertname": LEFT_OUT, "severity": "warning"}
    assert found[-1].annotations["summary"] == "9,501 more alerts are not sent"
    assert "there are 9,501 A." in found[-1].annotations["description"]
    assert selected(given[:2], (), 1, 7)[-1].annotations["summary"] == "1 more alert is not sent"


def test_an_alert_that_is_open_stays_and_gives_way_to_more_severe_ones_only() -> None:
    light, heavy, full = alert("light"), alert("heavy", weight=9), alert("full", CRITICAL)
    is_open = {light.fingerprint}
    assert topics(selected([heavy, light], is_open, 1, 7)) == ["light", LEFT_OUT]
    assert topics(selected([heavy, light, full], is_open, 1, 7)) == ["full", LEFT_OUT]
