"""A bounded number of alerts: the most severe, and one that counts the rest. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from headgate.pipeline.alerts.alert import ALERT_NAME, WARNING, Alert, named

LEFT_OUT: Final = "HeadgateAlertsLeftOut"


def selected(
    alerts: Sequence[Alert], is_open: Collection[str], count_max: int, now_ns: int
) -> list[Alert]:
    """The ``count_max`` most severe alerts, those of ``is_open`` behind them, and then one that
    says how many are missing.

    ``is_open``: fingerprints of the alerts that the target has. Each of these stays while it lasts,
    because its end would say that it is over. Among alerts of one severity they come first, so only
    more severe ones are added beyond the bound: with two severities, at most twice ``count_max``
    alerts are open.
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
    sent = order[:count_max]
    left: list[Alert] = []
    for alert in order[count_max:]:
        (sent if alert.fingerprint in is_open else left).append(alert)
    return [*sent, _left_out(left, len(sent), now_ns)] if left else sent


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
