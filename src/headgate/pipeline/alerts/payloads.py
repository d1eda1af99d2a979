"""Alerts in Alertmanager's two forms: of its API, and of the webhooks that it calls. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from headgate.base.units import KIB
from headgate.pipeline.alerts.alert import ALERT_NAME, fingerprint, tenant_of_labels
from headgate.pipeline.alerts.state import SentAlert
from headgate.pipeline.time_span import iso_text

BATCH_MAX: Final = 100
"""Alerts in one request, of some 100 kB together."""
BATCH_BYTES_MAX: Final = 256 * KIB
"""Most bytes of the labels and annotations of a request's alerts, but for one alone. Clients choose
names, and a proxy before a target that takes 1 MiB, as by default, refuses all alerts of a request.
"""

RECEIVER: Final = "headgate"
_WEBHOOK_VERSION: Final = "4"
_NO_TIME: Final = "0001-01-01T00:00:00Z"
"""Alertmanager's ``endsAt`` of an open alert in a webhook."""


def batches(alerts: Sequence[SentAlert], *, by_name: bool) -> Iterator[list[SentAlert]]:
    """The alerts in requests: ends first, then the others in their order.

    An alert that ended may begin again with the same labels, so its end goes first. ``by_name``: a
    request has alerts of one name. It has at most :data:`BATCH_MAX` of them, and
    :data:`BATCH_BYTES_MAX`.
    """
    groups: dict[tuple[bool, str], list[SentAlert]] = {}
    for alert in sorted(alerts, key=lambda alert: alert.ends_ns is None):
        name = alert.labels[ALERT_NAME] if by_name else ""
        groups.setdefault((alert.ends_ns is None, name), []).append(alert)
    for alike in groups.values():
        yield from _bounded(alike)


def in_turns(alerts: Sequence[SentAlert]) -> list[SentAlert]:
    """The alerts such that tenants take turns: the first one of each, then the second ones."""
    before: Counter[str] = Counter()
    turns: list[int] = []
    for alert in alerts:
        tenant = tenant_of_labels(alert.labels)
        turns.append(before[tenant])
        before[tenant] += 1
    return [alert for _, alert in sorted(zip(turns, alerts, strict=True), key=itemgetter(0))]


def by_tenant(alerts: Sequence[SentAlert]) -> dict[str, list[SentAlert]]:
    """The alerts of each tenant, in their order."""
    found: dict[str, list[SentAlert]] = {}
    for alert in alerts:
        found.setdefault(tenant_of_labels(alert.labels), []).append(alert)
    return found


def _bounded(alerts: Sequence[SentAlert]) -> Iterator[list[SentAlert]]:
    batch: list[SentAlert] = []
    bytes_of_batch = 0
    for alert in alerts:
        own_bytes = len(json.dumps([*alert.labels.items(), *alert.annotations.items()]))
        is_full = len(batch) == BATCH_MAX or bytes_of_batch + own_bytes > BATCH_BYTES_MAX
        if batch and is_full:
            yield batch
            batch, bytes_of_batch = [], 0
        batch.append(alert)
        bytes_of_batch += own_bytes
    yield batch


def alertmanager_body(
    alerts: Sequence[SentAlert],
    extra: Mapping[str, str],
    report_url: str | None,
    expires_ns: int,
    now_ns: int,
) -> list[dict[str, Any]]:
    """The body of ``POST /api/v2/alerts``.

    ``extra``: labels of all alerts. An open alert ends at ``now_ns + expires_ns`` if it is not sent
    again before.
    """
    return [
        {
            "labels": {**extra, **alert.labels},
            **_texts(alert, report_url),
            "startsAt": _instant(alert.starts_ns),
            "endsAt": _instant(now_ns + expires_ns if alert.ends_ns is None else alert.ends_ns),
        }
        for alert in alerts
    ]


def webhook_body(
    alerts: Sequence[SentAlert], extra: Mapping[str, str], report_url: str | None
) -> dict[str, Any]:
    """The body of a webhook, as Alertmanager sends it: alerts of one name in one group."""
    is_open = any(alert.ends_ns is None for alert in alerts)
    rows = [_webhook_alert(alert, extra, report_url) for alert in alerts]
    name = alerts[0].labels[ALERT_NAME]
    return {
        "version": _WEBHOOK_VERSION,
        "groupKey": f'{{}}:{{alertname="{name}"}}',
        "truncatedAlerts": 0,
        "status": "firing" if is_open else "resolved",
        "receiver": RECEIVER,
        "groupLabels": {ALERT_NAME: name},
        "commonLabels": _common([row["labels"] for row in rows]),
        "commonAnnotations": _common([row["annotations"] for row in rows]),
        "externalURL": report_url or "",
        "alerts": rows,
    }


def _webhook_alert(
    alert: SentAlert, extra: Mapping[str, str], report_url: str | None
) -> dict[str, Any]:
    labels = {**extra, **alert.labels}
    return {
        "status": "firing" if alert.ends_ns is None else "resolved",
        "labels": labels,
        "annotations": {},
        "startsAt": _instant(alert.starts_ns),
        "endsAt": _NO_TIME if alert.ends_ns is None else _instant(alert.ends_ns),
        "generatorURL": "",
        "fingerprint": fingerprint(labels),
        **_texts(alert, report_url),
    }


def _texts(alert: SentAlert, report_url: str | None) -> dict[str, Any]:
    """The annotations, with a link to the report's section if there is a report."""
    if report_url is None:
        return {"annotations": dict(alert.annotations)}
    link = f"{report_url}#{alert.section}" if alert.section else report_url
    return {"annotations": {**alert.annotations, "report": link}, "generatorURL": link}


def _common(texts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    first = texts[0]
    return {
        name: text
        for name, text in first.items()
        if all(other.get(name) == text for other in texts)
    }


def _instant(time_ns: int) -> str:
    return iso_text(time_ns).replace("+00:00", "Z")
