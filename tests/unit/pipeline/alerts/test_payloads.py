"""The two forms in which Alertmanager knows alerts."""

from __future__ import annotations

import json

from headgate.base.units import KIB, NS_PER_S
from headgate.pipeline.alerts.alert import fingerprint
from headgate.pipeline.alerts.payloads import (
    BATCH_MAX,
    alertmanager_body,
    batches,
    webhook_body,
)
from tests.unit.pipeline.alerts.test_state import sent

T_NS = 1_790_000_000 * NS_PER_S
AT = "2026-09-21T14:13:20Z"
LATER = "2026-09-21T14:14:20Z"


def test_requests_are_bounded_and_ends_come_first() -> None:
    alerts = [sent(str(number), seen_ns=number) for number in range(BATCH_MAX + 1)]
    over = [sent("over", ends_ns=9)]
    found = list(batches([*alerts, *over], by_name=False))
    assert [len(batch) for batch in found] == [1, BATCH_MAX, 1]
    assert found[0] == over
    assert [alert.labels["topic"] for alert in found[1][:2]] == ["0", "1"]
    assert list(batches([], by_name=True)) == []


def test_long_names_of_a_tenant_make_no_request_that_a_proxy_refuses() -> None:
    long = "\U0001f600" * 508
    alerts = [
        sent(
            labels={"alertname": "A", "topic": f"{long}{number}", "subscription": long},
            annotations={"summary": f"{long} on {long}{number} has a backlog"},
        )
        for number in range(90)
    ]
    others = [sent(str(number)) for number in range(10)]
    found = list(batches([*others, *alerts], by_name=False))
    assert [alert for batch in found for alert in batch] == [*others, *alerts]
    bodies = [json.dumps(alertmanager_body(batch, {}, None, 1, T_NS)) for batch in found]
    assert max(map(len, bodies)) < 512 * KIB, "nginx takes 1 MiB by default"
    assert len(bodies) < 10


def test_a_webhook_gets_alerts_of_one_name_together_in_their_order() -> None:
    first = sent(labels={"alertname": "Z", "severity": "critical"})
    alerts = [first, sent("a"), sent("b")]
    assert list(batches(alerts, by_name=True)) == [[first], [sent("a"), sent("b")]]
    assert len(list(batches(alerts, by_name=False))) == 1


def test_an_open_alert_in_alertmanagers_api_ends_by_itself() -> None:
    alerts = [sent(starts_ns=T_NS), sent("over", starts_ns=T_NS, ends_ns=T_NS + 60 * NS_PER_S)]
    body = alertmanager_body(alerts, {"env": "prod"}, "https://h/report.html", 60 * NS_PER_S, T_NS)
    assert body[0] == {
        "labels": {"env": "prod", "alertname": "A", "severity": "warning", "topic": "t"},
        "annotations": {"summary": "ä", "report": "https://h/report.html#quotas"},
        "generatorURL": "https://h/report.html#quotas",
        "startsAt": AT,
        "endsAt": LATER,
    }
    assert body[1]["endsAt"] == LATER
    assert "generatorURL" not in alertmanager_body([sent()], {}, None, 1, 1)[0]


def test_a_webhook_has_the_fields_of_alertmanager() -> None:
    """https://prometheus.io/docs/alerting/latest/configuration/#webhook_config"""
    body = webhook_body([sent(starts_ns=T_NS), sent("u", starts_ns=T_NS)], {"env": "prod"}, None)
    labels = {"env": "prod", "alertname": "A", "severity": "warning", "topic": "t"}
    alert = body["alerts"][0]
    assert body | {"alerts": []} == {
        "version": "4",
        "groupKey": '{}:{alertname="A"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "headgate",
        "groupLabels": {"alertname": "A"},
        "commonLabels": {"env": "prod", "alertname": "A", "severity": "warning"},
        "commonAnnotations": {"summary": "ä"},
        "externalURL": "",
        "alerts": [],
    }
    assert alert == {
        "status": "firing",
        "labels": labels,
        "annotations": {"summary": "ä"},
        "startsAt": AT,
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "fingerprint": fingerprint(labels),
    }


def test_a_webhook_hears_of_an_end() -> None:
    over = sent(starts_ns=T_NS, ends_ns=T_NS + 60 * NS_PER_S, section="")
    body = webhook_body([over], {}, "https://h/r")
    assert body["status"] == "resolved"
    assert (body["alerts"][0]["status"], body["alerts"][0]["endsAt"]) == ("resolved", LATER)
    assert body["externalURL"] == body["alerts"][0]["generatorURL"] == "https://h/r"
