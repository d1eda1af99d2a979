"""Park causes of topics: which limit, quota or disk delayed their producers in a minute or a range.

Minutes and ranges use the same rules: seconds by cause are summed, and cause and sentence follow
from the sums. The input is sorted by :data:`TOPIC_ORDER`. A minute needs the previous one for the
limit that was in force at its start.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_S
from headgate.flow.account.verdict import INFERRED, MEASURED
from headgate.pipeline.kernels.account_windows import inferred_rows, longs
from headgate.pipeline.kernels.array_types import Flags, Longs
from headgate.pipeline.kernels.column_values import (
    hour_rows,
    known,
    nullable,
    quotients,
    texts_by_code,
)
from headgate.pipeline.kernels.counted_time import counted_ns
from headgate.pipeline.kernels.park_sentences import NO_ROW, Spans, park_sentences
from headgate.pipeline.kernels.publish_limits import BROKER_LIMIT_COLUMNS
from headgate.pipeline.tables.arrow_types import (
    arrow_schema,
    changes,
    conform,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import TOPIC_COLUMNS, TOPIC_KEY, TOPIC_ORDER
from headgate.pipeline.tables.publishing import PARK_COLUMNS, PUBLISH_ATTRIBUTION, PUBLISH_LEVELS
from headgate.record.fields import PARKED_FIELD_NAMES, QUOTA_TYPES

_SUMMED: Final = ("covered_ns", "msgs_in", "bytes_in", "duplicates_dropped")
_PARKED_NS: Final = tuple(f"parked_{cause.label}_ns" for cause in ParkCause)
_WAITING: Final = tuple(name for name in PARKED_FIELD_NAMES if name not in _PARKED_NS)

INTERVAL_COLUMNS: Final = (
    *TOPIC_ORDER,
    "broker",
    "evidence",
    "from_ns",
    "to_ns",
    *_SUMMED,
    "gaps",
    "producers",
    *PARKED_FIELD_NAMES,
    *PUBLISH_LEVELS,
    "backlog_bytes",
    "oldest_age_ns",
    *(
        f"quota_{quota}_{part}"
        for quota in QUOTA_TYPES
        for part in ("limit_bytes" if quota == "size" else "limit_ns", "policy", "source")
    ),
)
"""Columns of ``intervals`` that the kernel needs, in rows of topics."""

INPUT_COLUMNS: Final = (*INTERVAL_COLUMNS, *BROKER_LIMIT_COLUMNS)
"""Those, and the broker-wide publish limit at the minute's end."""

RANGE_COLUMNS: Final = (*TOPIC_COLUMNS, *PARK_COLUMNS)
"""Columns of a topic's park causes over a range."""

_LABELS: Final = tuple(cause.label for cause in ParkCause)


def publish_table(table: pa.Table, hours: Collection[int]) -> pa.Table:
    """One row for each topic and minute of some hours (numbers since the epoch).

    A minute without a published, parked or dropped message has no row. ``table`` has all minutes of
    each topic in those hours, and the one before each hour.
    """
    schema = table_arrow_schema(PUBLISH_ATTRIBUTION)
    rows = np.flatnonzero(_has_row(table) & hour_rows(table, hours))
    if len(rows) == 0:
        return schema.empty_table()
    spans = Spans(rows, np.arange(len(rows)), _adjacent(table)[rows])
    keys = table.select(list(TOPIC_ORDER)).take(pa.array(rows))
    columns = {
        **partition_columns(longs(table, "from_ns")[rows]),
        **{name: keys.column(name) for name in TOPIC_ORDER},
        **_park_columns(table, spans, is_range=False),
    }
    return conform(columns, schema, len(rows))


def publish_range_table(table: pa.Table, since_ns: int, until_ns: int) -> pa.Table:
    """One row for each topic with minutes that touch ``[since_ns, until_ns)``, idle or not."""
    schema = arrow_schema(RANGE_COLUMNS)
    near = table.filter(pc.less(table.column("from_ns"), until_ns))
    rows = np.flatnonzero(longs(near, "to_ns") > since_ns)
    if len(rows) == 0:
        return schema.empty_table()
    before = _adjacent(near)[rows]
    topic = np.cumsum(changes(near, TOPIC_KEY))[rows]
    is_first = np.concatenate(([True], topic[1:] != topic[:-1]))
    # Within the range the minute before may be farther away, after a gap in the telemetry.
    before[1:] = np.where(is_first[1:], before[1:], rows[:-1])
    spans = Spans(rows, np.flatnonzero(is_first), before)
    keys = near.select(list(TOPIC_KEY)).take(pa.array(spans.first))
    columns = {
        **{name: keys.column(name) for name in TOPIC_KEY},
        **_park_columns(near, spans, is_range=True),
    }
    return conform(columns, schema, len(spans))


def _has_row(table: pa.Table) -> Flags:
    """Which minutes have a row.

    A message between two looks at a cluster is cut at the minute between them: there may be bytes
    without a message.
    """
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    for name in ("msgs_in", "bytes_in", "duplicates_dropped", *PARKED_FIELD_NAMES):
        mask |= longs(table, name) > 0
    return mask


def _adjacent(table: pa.Table) -> Longs:
    """By row: the place of the minute right before it, :data:`NO_ROW` if that is not there.

    After a gap in the telemetry there is none. So a row never depends on more than two minutes.
    """
    number = longs(table, "from_ns") // MINUTE_NS
    follows = np.zeros(table.num_rows, dtype=np.bool_)
    follows[1:] = ~changes(table, TOPIC_KEY)[1:] & (number[1:] == number[:-1] + 1)
    return np.where(follows, np.arange(table.num_rows) - 1, NO_ROW)


def _park_columns(table: pa.Table, spans: Spans, *, is_range: bool) -> dict[str, Any]:
    """The columns ``PARK_COLUMNS`` for the minutes of each group together."""
    last = table.take(pa.array(spans.last))
    from_ns, to_ns = longs(table, "from_ns")[spans.first], longs(last, "to_ns")
    sums = {name: _sums(table, spans, name) for name in (*_SUMMED, *_PARKED_NS)}
    held_ns = np.stack([sums[name][0] for name in _PARKED_NS])
    causes = _two_longest(held_ns)
    base_ns = np.add.reduceat(counted_ns(table)[spans.rows], spans.begins)
    held = np.where(causes[0] < 0, 0, held_ns.max(axis=0))
    share = np.minimum(1.0, quotients(held, np.maximum(base_ns, 1)))
    covered_ns, _ = sums.pop("covered_ns")
    inferred = np.logical_or.reduceat(inferred_rows(table)[spans.rows], spans.begins)
    range_s = (to_ns - from_ns) / NS_PER_S if is_range else None
    sentences = park_sentences(table, spans, held_ns, sums["duplicates_dropped"][0], range_s)
    return {
        "completeness": pa.array(np.minimum(1.0, quotients(covered_ns, to_ns - from_ns))),
        "from_ns": pa.array(from_ns),
        "to_ns": pa.array(to_ns),
        **{name: pa.array(total, mask=~there) for name, (total, there) in sums.items()},
        **{name: last.column(name) for name in ("broker", "producers", *_WAITING, *PUBLISH_LEVELS)},
        "cause": texts_by_code(_LABELS, causes[0]),
        "second_cause": texts_by_code(_LABELS, causes[1]),
        "held_share": nullable(np.where(base_ns != 0, share, np.nan)),
        "evidence": texts_by_code((MEASURED, INFERRED), inferred.astype(np.int64)),
        "sentence": pa.array(sentences, pa.string()),
    }


def _sums(table: pa.Table, spans: Spans, name: str) -> tuple[Longs, Flags]:
    """By group: the sum of a column, and whether one of its minutes has it.

    A broker without a feature does not.
    """
    total = np.add.reduceat(longs(table, name)[spans.rows], spans.begins)
    return total, np.logical_or.reduceat(known(table, name)[spans.rows], spans.begins)


def _two_longest(held_ns: Longs) -> tuple[Longs, Longs]:
    """The two causes that parked for longest, of equal ones the first; -1 if none did."""
    groups = np.arange(held_ns.shape[1])
    first = held_ns.argmax(axis=0)
    rest = held_ns.copy()
    rest[first, groups] = 0
    second = rest.argmax(axis=0)
    return (
        np.where(held_ns[first, groups] > 0, first, -1),
        np.where(rest[second, groups] > 0, second, -1),
    )
