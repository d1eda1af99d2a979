"""A bounded number of alerts: the most severe of each tenant, and one that counts others. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from headgate.base.fair_largest import FairLargest
from headgate.pipeline.alerts.alert import ALERT_NAME, WARNING, Alert, named, tenant_of_labels

LEFT_OUT: Final = "HeadgateAlertsLeftOut"


OPEN_PARTS: Final = 3
"""Alerts that are open, as a multiple of the bound. One tenant alone can have twice the bound, when
severe ones come later; so there is room for the others."""


def selected(
    alerts: Sequence[Alert], is_open: Collection[str], count_max: int, now_ns: int
) -> list[Alert]:
    """The ``count_max`` most severe alerts, those of ``is_open`` too, and then one that says how
    many are missing. A tenant with very many leaves room to the others, whatever their severity:
    it may have as many backlogs and reached quotas as it likes.

    ``is_open``: identities of the alerts that the target has. Each of these stays while it lasts,
    because its end would say that it is over. Among a tenant's alerts of one severity they come
    first. At most :data:`OPEN_PARTS` times ``count_max`` alerts are open.
    """
    order = sorted(
        alerts,
        key=lambda alert: (
            alert.rank,
            alert.identity not in is_open,
            alert.labels[ALERT_NAME],
            -alert.weight,
            alert.identity,
        ),
    )
    chosen = _of_each_tenant(order, count_max)
    room = OPEN_PARTS * count_max - sum(alert.identity in is_open for alert in order)
    sent: list[Alert] = []
    left: list[Alert] = []
    for alert in order:
        if alert.identity in is_open:
            sent.append(alert)
        elif alert.identity in chosen and room > 0:
            room -= 1
            sent.append(alert)
        else:
            left.append(alert)
    return [*sent, _left_out(left, len(sent), now_ns)] if left else sent


def _of_each_tenant(order: Sequence[Alert], count_max: int) -> set[str]:
    """The identities of the first ones, of which tenants with most have fewer. Alerts about no
    tenant, such as a cluster without telemetry, are those of an owner of their own."""
    first = FairLargest[str](count_max)
    for place, alert in enumerate(order):
        first.add(tenant_of_labels(alert.labels), -place, alert.identity)
    return {each for found in first.taken().values() for _, each in found}


def _left_out(alerts: Sequence[Alert], sent: int, now_ns: int) -> Alert:
    counts = Counter(alert.labels[ALERT_NAME] for alert in alerts)
    parts = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
    verb = "alert is" if len(alerts) == 1 else "alerts are"
    return Alert(
        named(LEFT_OUT, WARNING),
        {
            "summary": f"{len(alerts):,} more {verb} not sent",
            "description": (
                f"Besides the {sent:,} alerts that are sent there are {parts}."
                " headgate pipeline report shows the worst; --alerts-max sets how many are sent."
            ),
        },
        None,
        now_ns,
    )
