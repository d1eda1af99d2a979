"""Rows of ``intervals`` as a busy cluster would have them: most minutes healthy, some in trouble.

Seven in ten subscriptions are healthy, one in ten is idle, and one in five has trouble of one kind
for two hours out of three. Columns are drawn by NumPy; nothing here is the product's.
"""

from __future__ import annotations

import multiprocessing
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.pipeline.store.delta_log import commit_append, ensure_table
from headgate.pipeline.store.parquet_files import FileAdded, write_tables
from headgate.pipeline.tables.arrow_types import TIMESTAMP, conform, table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.record.fields import STATE_FIELD_NAMES

FIRST_HOUR: Final = 490_000
"""Hours since the epoch; it begins a day."""
PARTS: Final = 4
"""Files of one hour, as of so many tasks."""
_MINUTE_S: Final = 60
_HEALTHY: Final = {"caught_up": 0.6, "awaiting_ack": 0.3, "dispatching": 0.1}
_TROUBLES: Final[tuple[tuple[dict[str, float], float, str], ...]] = (
    # The account, what is acknowledged of what is published, and the limit's level and unit.
    ({"no_permits": 0.9, "dispatching": 0.1}, 0.5, ""),
    ({"awaiting_ack": 0.7, "unacked_limit": 0.25, "dispatching": 0.05}, 0.7, ""),
    ({"throttled_subscription_messages_hungry": 0.95, "dispatching": 0.05}, 0.4, "subscription"),
    ({"throttled_topic_messages_hungry": 0.9, "no_permits": 0.1}, 0.6, "topic"),
    ({"throttled_topic_bytes_hungry": 0.9, "dispatching": 0.1}, 0.6, "topic bytes"),
    ({"throttled_broker_messages_hungry": 0.8, "storage": 0.2}, 0.8, "broker"),
    ({"throttled_subscription_messages_busy": 0.8, "no_permits": 0.2}, 0.8, "subscription"),
    ({"throttled_topic_messages_hungry": 0.49, "no_permits": 0.48, "storage": 0.03}, 0.5, "topic"),
    ({"no_consumer": 1.0}, 0.0, ""),
    ({"storage": 0.8, "dispatching": 0.2}, 0.9, ""),
)


def hour_rows(hour: int, subscriptions: range, minutes: int, seed: int) -> pa.Table:
    """The minutes of one hour of some subscriptions, sorted by subscription and minute."""
    draw = np.random.default_rng(seed)
    number = np.repeat(np.arange(subscriptions.start, subscriptions.stop), minutes)
    place = np.tile(np.arange(minutes), len(subscriptions))
    count = len(number)
    trouble = np.where(
        (number % 5 == 0) & ((hour + number) % 3 != 0), (number // 5) % len(_TROUBLES), -1
    )
    # All sizes of traffic; one in ten has none.
    rate = np.where(number % 10 == 1, 0.0, 2.0 ** (number % 11))
    appended = (rate * _MINUTE_S * draw.uniform(0.9, 1.1, count)).astype(np.int64)
    kept = np.array([share for _, share, _ in _TROUBLES] + [1.0])[trouble]
    acked = (appended * kept).astype(np.int64)
    lag = np.where(trouble < 0, 0, appended - acked)
    start = np.where(trouble < 0, 0, (rate * _MINUTE_S).astype(np.int64) * (place + 1))
    oldest = np.where(
        trouble < 0, draw.integers(5_000_000, 200_000_000, count), 10**10 * (place + 1)
    )
    from_ns = hour * HOUR_NS + place * MINUTE_NS
    covered = np.where(draw.random(count) < 0.01, MINUTE_NS // 2, MINUTE_NS)
    columns: dict[str, Any] = {
        **_names(hour, number, place),
        "from_ns": from_ns,
        "to_ns": from_ns + MINUTE_NS,
        "covered_ns": covered,
        "completeness": covered / MINUTE_NS,
        "samples": np.full(count, 6),
        **dict.fromkeys(("gaps", "restarts", "resets", "clock_steps"), np.zeros(count, np.int64)),
        "consumers": np.where(trouble == 8, 0, 1 + number % 3),
        "appended": appended,
        "msgs_out": acked,
        "bytes_out": acked * (100 + number % 1_000),
        "acked": acked,
        **dict.fromkeys(
            ("skipped", "rewound", "redelivered", "expired", "evicted"), np.zeros(count, np.int64)
        ),
        "backlog_messages_start": start,
        "backlog_messages": start + lag,
        "oldest_age_max_ns": oldest,
        "delayed": np.zeros(count, np.int64),
        "unacked_start": np.minimum(start, 500),
        "unacked": np.minimum(start + lag, 500),
        "permits": draw.integers(0, 1_000, count),
        **_account(trouble, covered, draw),
        **_limits(trouble, rate),
    }
    arrays = {name: v if isinstance(v, pa.Array) else pa.array(v) for name, v in columns.items()}
    return conform(arrays, table_arrow_schema(INTERVALS), count)


def _names(hour: int, number: Any, place: Any) -> dict[str, pa.Array]:
    count = len(number)
    day = date(1970, 1, 1) + timedelta(days=hour // 24)
    topics = pa.array(
        [f"persistent://acme/orders-{n % 50}/topic-{n // 2}" for n in number[place == 0]]
    )
    subject = pa.array(np.repeat(np.arange(len(topics)), count // len(topics)))

    def all_the_same(value: Any, kind: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, kind), count)

    return {
        "date": all_the_same(day, pa.date32()),
        "hour": all_the_same(hour % 24, pa.int32()),
        "kind": all_the_same("subscription", pa.string()),
        "minute": pa.array((hour * 60 + place) * 60_000_000).cast(TIMESTAMP),
        "cluster": all_the_same("east", pa.string()),
        "topic": topics.take(subject),
        "subscription": pa.array(["billing", "audit"]).take(pa.array(number % 2)),
        "incarnation": all_the_same(1, pa.int64()),
        "broker": pa.array([f"broker-{i}:6650" for i in range(3)]).take(pa.array(number % 3)),
        "evidence": all_the_same("measured", pa.string()),
        "type": all_the_same("Shared", pa.string()),
    }


def _account(trouble: Any, covered: Any, draw: np.random.Generator) -> dict[str, Any]:
    """Seconds of every cell, a little different each minute; they add up to the time covered."""
    kinds = [*(cells for cells, _, _ in _TROUBLES), _HEALTHY]
    shares = np.zeros((len(STATE_FIELD_NAMES), len(kinds)))
    for kind, cells in enumerate(kinds):
        for name, share in cells.items():
            shares[STATE_FIELD_NAMES.index(f"state_{name}_ns"), kind] = share
    left = covered.copy()
    columns: dict[str, Any] = {}
    for name, row in zip(STATE_FIELD_NAMES, shares, strict=True):
        share = row[trouble]
        spent = np.minimum(left, (share * covered * draw.uniform(0.95, 1.05, len(share))))
        columns[name] = spent.astype(np.int64)
        left = left - columns[name]
    columns["state_dispatching_ns"] = columns["state_dispatching_ns"] + left
    return columns


def _limits(trouble: Any, rate: Any) -> dict[str, Any]:
    levels = np.array([level for _, _, level in _TROUBLES] + [""])[trouble]
    amount = np.maximum(1, (rate * 0.6).astype(np.int64))
    columns: dict[str, Any] = {}
    for level in ("subscription", "topic", "broker"):
        held = levels == level
        by_bytes = levels == f"{level} bytes"
        columns |= {
            f"limit_{level}_messages": pa.array(amount, mask=~held),
            f"limit_{level}_bytes": pa.array(amount * 500, mask=~by_bytes),
            f"limit_{level}_period_ns": pa.array(
                np.full(len(rate), 1_000_000_000), mask=~(held | by_bytes)
            ),
            f"limit_{level}_source": pa.array(
                np.full(len(rate), "namespace policy acme/orders"), mask=~(held | by_bytes)
            ),
        }
    return columns


def write_intervals(root: str, subscriptions: int, minutes: int) -> int:
    """Write a table ``intervals`` into a folder; the number of its rows."""
    ensure_table(root, INTERVALS)
    step = -(-subscriptions // PARTS)
    jobs = [
        (root, FIRST_HOUR + hour, range(first, min(first + step, subscriptions)), length)
        for hour, length in enumerate(_hour_lengths(minutes))
        for first in range(0, subscriptions, step)
    ]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        files = [file for files in pool.starmap(_write, jobs) for file in files]
    commit_append(root, INTERVALS, files, None)
    return sum(file.rows for file in files)


def _hour_lengths(minutes: int) -> list[int]:
    return [min(60, minutes - first) for first in range(0, minutes, 60)]


def _write(root: str, hour: int, subscriptions: range, minutes: int) -> list[FileAdded]:
    rows = hour_rows(hour, subscriptions, minutes, seed=hour * 1_000_003 + subscriptions.start)
    return write_tables(root, "bench", [(INTERVALS.name, rows)])
