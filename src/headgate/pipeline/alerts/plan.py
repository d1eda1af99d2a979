"""Compares what is wrong now with what a target has. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from headgate.base.units import NS_PER_HOUR
from headgate.pipeline.alerts.alert import DESCRIPTION, Alert
from headgate.pipeline.alerts.state import SentAlert, TargetState
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.episodes import QUIET_MINUTES_MAX
from headgate.pipeline.time_span import minute_text

ENDED_MAX: Final = 10_000
"""Ended alerts that wait for a target; of more, the oldest are dropped."""

ENDED_KEEP_NS: Final = 7 * 24 * NS_PER_HOUR
"""An alert that ended so long ago is dropped even if the target never accepted its end."""


def next_state(
    state: TargetState, alerts: Sequence[Alert], ends_ns: Mapping[str, int], now_ns: int
) -> TargetState:
    """The state that a target should have: what is found is open, everything else ended.

    ``ends_ns``: when alerts ended, by identity, where that is known; else it is now.
    """
    found = {alert.identity: alert for alert in alerts}
    now_open: dict[str, SentAlert] = {}
    ended = list(state.ended)
    for key, alert in found.items():
        before = state.open.get(key)
        if before is not None and _is_another(alert, before):
            ended.append(_ended(before, min(ends_ns.get(key, now_ns), alert.starts_ns or now_ns)))
            before = None
        now_open[key] = _opened(alert, before, now_ns)
    for key, before in state.open.items():
        if key in found:
            continue
        if _is_kept(before, now_ns):
            now_open[key] = before
        else:
            ended.append(_ended(before, min(ends_ns.get(key, now_ns), now_ns)))
    return TargetState(now_open, tuple(ended))


def _is_another(alert: Alert, before: SentAlert) -> bool:
    """Whether it began after the open one was seen for the last time, and its longest pause.

    Rows that come late may move a begin; then it is the same one.
    """
    last_ns = before.seen_ns + QUIET_MINUTES_MAX * MINUTE_NS
    return alert.starts_ns is not None and alert.starts_ns > last_ns


def _is_kept(before: SentAlert, now_ns: int) -> bool:
    return 0 <= now_ns - before.found_ns < before.keeps_ns


def _opened(alert: Alert, before: SentAlert | None, now_ns: int) -> SentAlert:
    begins_ns = [
        start_ns
        for start_ns in (alert.starts_ns, None if before is None else before.starts_ns)
        if start_ns is not None
    ]
    return SentAlert(
        labels=dict(alert.labels),
        annotations=dict(alert.annotations),
        # The clock may have been ahead of the telemetry; an alert does not begin after now.
        starts_ns=min([*begins_ns, now_ns]),
        ends_ns=None,
        seen_ns=alert.seen_ns,
        found_ns=now_ns,
        keeps_ns=alert.keeps_ns,
        delivered_ns=None if before is None else before.delivered_ns,
        section=alert.section,
    )


def _ended(before: SentAlert, end_ns: int) -> SentAlert:
    end_ns = max(end_ns, before.starts_ns)
    texts = dict(before.annotations)
    if DESCRIPTION in texts:
        # The sentence is of the time when it was open.
        texts[DESCRIPTION] = f"Ended at {minute_text(end_ns)}. Before: {texts[DESCRIPTION]}"
    return replace(before, annotations=texts, ends_ns=end_ns, delivered_ns=None)


def bounded(state: TargetState, now_ns: int) -> tuple[TargetState, int]:
    """The state with a bounded number of ended alerts, and how many were dropped."""
    first_ns = now_ns - ENDED_KEEP_NS
    kept = [alert for alert in state.ended if (alert.ends_ns or 0) >= first_ns][-ENDED_MAX:]
    return TargetState(state.open, tuple(kept)), len(state.ended) - len(kept)


def due(state: TargetState, repeat_ns: int, now_ns: int) -> list[SentAlert]:
    """The open alerts to send: new ones, and those that were sent ``repeat_ns`` ago or longer."""
    return [
        alert
        for alert in state.open.values()
        if alert.delivered_ns is None or not 0 <= now_ns - alert.delivered_ns < repeat_ns
    ]


def delivered(state: TargetState, sent: Sequence[SentAlert], now_ns: int) -> TargetState:
    """The state after the target accepted these alerts.

    What began again before the target accepted an end with the same labels counts as not delivered:
    the target takes the present one for ended.
    """
    # Two ends may be equal, and alerts have no hash.
    places = {id(alert) for alert in sent}
    now_open = dict(state.open)
    for alert in sent:
        key = alert.identity
        if key in now_open:
            delivered_ns = now_ns if alert.ends_ns is None else None
            now_open[key] = replace(now_open[key], delivered_ns=delivered_ns)
    return TargetState(now_open, tuple(alert for alert in state.ended if id(alert) not in places))
