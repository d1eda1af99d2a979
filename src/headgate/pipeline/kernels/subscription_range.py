"""The verdict of one subscription over a range of time, computed without Spark."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.flow.account.demonstrated import Interval, demonstrated_ack_per_s
from headgate.pipeline.kernels.attribution import DEMONSTRATED_RATE, range_table
from headgate.pipeline.kernels.minute_runs import minute_runs
from headgate.pipeline.kernels.topic_waiters import WAITERS
from headgate.record.fields import STATE_FIELD_NAMES

_RATE_COLUMNS: Final = (
    "covered_ns",
    "acked",
    "evicted",
    "expired",
    "backlog_messages_start",
    "backlog_messages",
    "delayed_start",
    "delayed",
    "oldest_age_max_ns",
    *STATE_FIELD_NAMES,
)


def judge_subscription_range(
    minutes: pa.Table, since_ns: int, until_ns: int, topic_waiters: int | None = None
) -> dict[str, Any] | None:
    """The verdict of the minutes that touch ``[since_ns, until_ns)``; None if there are none.

    ``minutes`` are one subscription's, in order, with ``kernels.attribution.INPUT_COLUMNS``. Those
    before the range only demonstrate the consumer's rate. ``topic_waiters``:
    ``topic_waiters.WAITERS`` of its topic. The row has ``RANGE_COLUMNS``.
    """
    before_end = minutes.filter(pc.less(minutes["from_ns"], until_ns))
    inside = before_end.filter(pc.greater(before_end["to_ns"], since_ns))
    if inside.num_rows == 0:
        return None
    runs = minute_runs(inside)
    demonstrated = pa.array([_demonstrated_rate_per_s(before_end)] * runs.num_rows, pa.float64())
    others = pa.array([topic_waiters] * runs.num_rows, pa.int64())
    judged: list[dict[str, Any]] = range_table(
        runs.append_column(DEMONSTRATED_RATE.name, demonstrated).append_column(WAITERS.name, others)
    ).to_pylist()
    return judged[0]


def _demonstrated_rate_per_s(minutes: pa.Table) -> float | None:
    """The rate by the law's own function, row by row: a day has only 1,440 minutes."""
    return demonstrated_ack_per_s(map(_interval, minutes.select(_RATE_COLUMNS).to_pylist()))


def _interval(minute: dict[str, Any]) -> Interval:
    cells_ns = [minute[name] or 0 for name in STATE_FIELD_NAMES]
    backlog = min(
        (minute["backlog_messages_start"] or 0) - (minute["delayed_start"] or 0),
        (minute["backlog_messages"] or 0) - (minute["delayed"] or 0),
    )
    return Interval(
        covered_ns=sum(cells_ns) or minute["covered_ns"],
        cells_ns=cells_ns,
        acked=minute["acked"] or 0,
        evicted=(minute["evicted"] or 0) + (minute["expired"] or 0),
        oldest_age_ns=(minute["oldest_age_max_ns"] or 0) if backlog > 0 else 0,
    )
