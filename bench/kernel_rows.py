"""Rows a second of the kernels behind four tables, beside the same rows made one by one.

A core's CPU time for a chunk of 50,000 minutes, as a Spark task hands it to the kernel. One in five
subjects is in trouble, the others are healthy or idle. Both sides take turns. The peer is the form
that the kernels had first, which the tests keep as their oracle.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bench.report import Table, median
from headgate.pipeline.kernels import episodes, limiters, publishing, quota_usage
from headgate.pipeline.kernels.publish_limits import BROKER_LIMIT_COLUMNS
from headgate.pipeline.tables.arrow_types import CHUNK_ROWS, arrow_schema, table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION, SHARE_COLUMNS
from headgate.pipeline.tables.columns import DOUBLE, HOUR_NS, MINUTE_NS, STRING, TableColumn
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.record.fields import PARKED_FIELD_NAMES
from tests.unit.pipeline.episodes_by_row import episodes_by_row
from tests.unit.pipeline.limiters_by_row import timeline_by_row
from tests.unit.pipeline.publishing_by_row import publish_by_row
from tests.unit.pipeline.quotas_by_row import quota_usage_by_row

HOUR: Final = 490_000
LEAST_TIMES: Final = 3.0
"""How much faster the arrays have to be."""
MINUTES: Final = 66
"""Of each subject: an hour with three minutes beside each of its edges."""

Columns = dict[str, Any]
Work = Callable[[], pa.Table]


def minutes(rows: int, per_subject: int = MINUTES) -> tuple[Any, Any, Columns]:
    """Number of the subject and the minute of each row, with the columns of all tables."""
    place = np.arange(rows)
    subject, minute = place // per_subject, place % per_subject - 3
    from_ns = HOUR * HOUR_NS + minute * MINUTE_NS
    start = datetime.fromtimestamp(HOUR * 3_600, UTC)
    columns: Columns = {
        "cluster": ["demo"] * rows,
        "topic": [f"persistent://acme/ns/t{number:06}" for number in subject.tolist()],
        "incarnation": [1] * rows,
        "broker": ["broker-1"] * rows,
        "evidence": ["measured"] * rows,
        "completeness": [1.0] * rows,
        "from_ns": from_ns,
        "to_ns": from_ns + MINUTE_NS,
        "covered_ns": [MINUTE_NS] * rows,
        "gaps": [0] * rows,
        "minute": [start + timedelta(minutes=number) for number in minute.tolist()],
    }
    return subject, minute, columns


def table_of(columns: Columns, schema: pa.Schema, names: tuple[str, ...]) -> pa.Table:
    """A table of some columns; those that are not given are null."""
    rows = len(columns["from_ns"])
    return pa.table(
        [pa.array(columns.get(n, [None] * rows), schema.field(n).type) for n in names],
        names=list(names),
    )


def episode_work(rows: int) -> tuple[Work, Work]:
    """Judged minutes: one subscription in five has a backlog for two thirds of the hour."""
    subject, minute, columns = minutes(rows)
    bad = (subject % 5 == 0) & (minute % 30 < 20)
    draw = np.random.default_rng(1)
    share = np.where(bad, draw.uniform(0.5, 1.0, rows), 0.0)
    columns |= {
        "subscription": ["s"] * rows,
        "verdict": np.where(bad, "CONSUMER", "NONE").tolist(),
        "bystander": [False] * rows,
        **{name: [0.0] * rows for name in SHARE_COLUMNS},
        "share_consumer": share,
        "share_none": 1.0 - share,
        "acked": draw.integers(0, 6_000, rows),
        "growth_messages": np.where(bad, 50, 0),
        "backlog_messages": np.where(bad, 50 * (minute + 4), 0),
        "oldest_age_max_ns": np.where(bad, MINUTE_NS, 10**7),
        "evicted": [0] * rows,
        "accounted_ns": [MINUTE_NS] * rows,
        "skipped": [0] * rows,
    }
    schema = table_arrow_schema(ATTRIBUTION).append(pa.field("skipped", pa.int64()))
    table = table_of(columns, schema, episodes.INPUT_COLUMNS)
    newest = episodes.NewestMinutes({("demo", HOUR): HOUR * 60 + 62}, HOUR + 1)
    return (
        lambda: episodes.episodes_table(table, {HOUR}, newest),
        lambda: episodes_by_row(table, {HOUR}, newest),
    )


def publish_work(rows: int) -> tuple[Work, Work]:
    """Minutes of topics: one in five is held by its publish limit, one in ten publishes nothing."""
    subject, _, columns = minutes(rows)
    held, draw = subject % 5 == 0, np.random.default_rng(2)
    columns |= {
        "msgs_in": np.where(subject % 10 == 1, 0, draw.integers(1, 6_000, rows)),
        "bytes_in": draw.integers(0, 10**6, rows),
        "producers": [1] * rows,
        **{name: [0] * rows for name in PARKED_FIELD_NAMES},
        "parked_topic_rate_ns": np.where(held, draw.integers(1, MINUTE_NS, rows), 0),
        "parked_topic_rate_messages": np.where(held, draw.integers(0, 100, rows), 0),
        "publish_limit_messages_per_s": np.where(held, 10.0 + subject % 7, 900.0),
        "publish_limit_source": ["topic policy"] * rows,
        "backlog_bytes": [0] * rows,
    }
    limits = tuple(
        TableColumn(name, STRING if name.endswith("source") else DOUBLE)
        for name in BROKER_LIMIT_COLUMNS
    )
    schema = pa.unify_schemas([table_arrow_schema(INTERVALS), arrow_schema(limits)])
    table = table_of(columns, schema, publishing.INPUT_COLUMNS)
    return lambda: publishing.publish_table(table, {HOUR}), lambda: publish_by_row(table, {HOUR})


def limiter_work(rows: int) -> tuple[Work, Work]:
    """Minutes of limiters: one in five has waiters in each of its six samples."""
    subject, _, columns = minutes(rows)
    busy, draw = subject % 5 == 0, np.random.default_rng(3)
    granted = np.where(busy, draw.integers(5_000, 6_000, rows), draw.integers(0, 600, rows))
    columns |= {
        "level": ["topic"] * rows,
        "subject": columns["topic"],
        "dimension": ["messages"] * rows,
        "limit": 100 + subject % 7,
        "limit_period_ns": [10**9] * rows,
        "limit_source": ["topic policy"] * rows,
        "offered": granted + np.where(busy, draw.integers(0, 100, rows), 0),
        "granted": granted,
        "waiting_ns": np.where(busy, draw.integers(1, MINUTE_NS, rows), 0),
        "waiters_max": np.where(busy, 3, 0),
        limiters.SAMPLES: [_samples(number) if there else None
                           for number, there in enumerate(busy.tolist())],
    }  # fmt: skip
    fields = [table_arrow_schema(INTERVALS).field(name) for name in limiters.INTERVAL_COLUMNS]
    schema = pa.schema([*fields, pa.field(limiters.SAMPLES, limiters.SAMPLES_TYPE)])
    table = table_of(columns, schema, (*limiters.INTERVAL_COLUMNS, limiters.SAMPLES))
    return lambda: limiters.timeline_table(table, {HOUR}), lambda: timeline_by_row(table, {HOUR})


def _samples(number: int) -> list[dict[str, Any]]:
    sample = dict.fromkeys(limiters.SAMPLE_COLUMNS)
    waiters = {"waiter_1": "a", "waiter_1_amount": 700, "waiter_2": "b", "waiter_2_amount": 300}
    return [
        {**sample, **waiters, "source": "x", "boot_id": "b", "seq": 6 * number + place, "row": 0,
         "waiters_max": 2}
        for place in range(6)
    ]  # fmt: skip


def quota_work(rows: int) -> tuple[Work, Work]:
    """Minutes of topics with a size quota: the backlog of one in five approaches it."""
    subject, minute, columns = minutes(rows)
    rises, draw = subject % 5 == 0, np.random.default_rng(4)
    noise = draw.integers(0, 10**6, rows)
    level = np.where(rises, 10**7 * (minute + 4) + noise, np.where(subject % 10 == 1, 0, noise))
    columns |= {
        "backlog_bytes": level,
        "backlog_bytes_max": level,
        "restarts": [0] * rows,
        "parked_backlog_quota_ns": [0] * rows,
        "quota_size_limit_bytes": [2 * 10**9] * rows,
        "quota_size_policy": ["producer_request_hold"] * rows,
        "quota_size_source": ["namespace policy acme/ns"] * rows,
    }
    table = table_of(columns, table_arrow_schema(INTERVALS), quota_usage.INPUT_COLUMNS)
    return (
        lambda: quota_usage.quota_usage_table(table, {HOUR}),
        lambda: quota_usage_by_row(table, {HOUR}),
    )


def cpu_of(work: Work) -> float:
    """Seconds of this process's CPU."""
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


def tabulate(rows: int, rounds: int) -> Table:
    """All four kernels, ``rounds`` turns of both sides."""
    pa.set_cpu_count(1)
    table = Table(f"Kernels of a core, {rows:,} minutes in a chunk")
    works = {
        "episodes": episode_work,
        "publish_attribution": publish_work,
        "throttle_timeline": limiter_work,
        "quota_usage": quota_work,
    }
    for name, make in works.items():
        arrays, row_by_row = make(rows)
        if arrays().num_rows != row_by_row().num_rows:
            raise RuntimeError(f"{name}: both forms make other rows")
        turns = [(cpu_of(row_by_row), cpu_of(arrays)) for _ in range(rounds)]
        before, now = (median([turn[side] for turn in turns]) for side in (0, 1))
        table.add(f"{name}, row by row", f"{rows / before:,.0f} rows/s")
        table.add(f"{name}, arrays", f"{rows / now:,.0f} rows/s")
        table.check_least(f"{name}, arrays / row by row", before / now, "times", LEAST_TIMES)
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=CHUNK_ROWS, help="minutes; 50,000")
    parser.add_argument("--rounds", type=int, default=5, help="turns of both sides; 5")
    options = parser.parse_args()
    tabulate(options.rows, options.rounds).print()


if __name__ == "__main__":
    main()
