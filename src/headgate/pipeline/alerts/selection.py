"""A bounded number of alerts: the most severe, and one that counts the others. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from headgate.pipeline.alerts.alert import ALERT_NAME, WARNING, Alert, named

LEFT_OUT: Final = "HeadgateAlertsLeftOut"


def selected(
    alerts: Sequence[Alert], is_open: Collection[str], count_max: int, now_ns: int
) -> list[Alert]:
    """At most ``count_max`` alerts, the most severe first, and then one that says how many are
    missing.

    ``is_open``: fingerprints of those that the target has. Among alerts of one severity they come
    first, so that alerts near the bound do not end and begin again with each small change.
    """
    order = sorted(
        alerts,
        key=lambda alert: (
            alert.rank,
            alert.fingerprint not in is_open,
            alert.labels[ALERT_NAME],
            -alert.weight,
            alert.fingerprint,
        ),
    )
    if len(order) <= count_max:
        return order
    return [*order[:count_max], _left_out(order[count_max:], count_max, now_ns)]


def _left_out(alerts: Sequence[Alert], count_max: int, now_ns: int) -> Alert:
    counts = Counter(alert.labels[ALERT_NAME] for alert in alerts)
    parts = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
    verb = "alert is" if len(alerts) == 1 else "alerts are"
    return Alert(
        named(LEFT_OUT, WARNING),
        {
            "summary": f"{len(alerts):,} more {verb} not sent",
            "description": (
                f"Besides the {count_max:,} most severe alerts there are {parts}."
                " headgate pipeline report shows the worst; --alerts-max sets how many are sent."
            ),
        },
        None,
        now_ns,
    )
