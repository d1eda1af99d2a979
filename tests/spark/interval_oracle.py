"""The expected rows of ``intervals``, computed independently by DuckDB.

One SQL statement for each kind, over the bronze rows of subjects that always changed (so that no
row is implied): neighbours by ``lag``, minutes by ``generate_series``, whole-number arithmetic. All
columns of the kind; those of other kinds are null.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from headgate.record.fields import FIELDS, Kind, Nature

_KEYS = {
    Kind.SUBSCRIPTION: ("cluster", "topic", "partition", "subscription", "incarnation"),
    Kind.TOPIC: ("cluster", "topic", "partition", "incarnation"),
    Kind.LIMITER: ("cluster", "level", "subject", "dimension", "incarnation"),
}
_PLACES = ("from_ns", "to_ns", "covered_ns", "completeness", "samples", "gaps")
_MARKS = ("restarts", "resets", "clock_steps")
_NET = (
    "(coalesce(appended, 0) + coalesce(rewound, 0) - coalesce(acked, 0) - coalesce(skipped, 0)"
    " - coalesce(expired, 0) - coalesce(evicted, 0))"
)
_STARTS = {
    Kind.SUBSCRIPTION: ("backlog_messages", "backlog_bytes", "unacked", "delayed"),
    Kind.TOPIC: ("backlog_bytes",),
    Kind.LIMITER: (),
}
"""Levels that are also told as they were at the minute's start."""

_SQL = """
with rows as (
  select distinct on (source, boot_id, seq, "row") * from bronze where kind = '{kind}'
), pairs as (
  select *, lag(covered_to_ns) over stream as previous_ns, {previous},
    lag(covered_to_ns) over whole is not null as is_known, {last}
  from rows
  window stream as (partition by {key}, source, boot_id, counting_since_ns order by seq, "row"),
    whole as (partition by {key}, source order by counting_since_ns, boot_id, seq, "row")
), pieces as (
  select *, previous_ns is null as begins, previous_ns is null and is_known as restart,
    covered_to_ns as t, least(coalesce(previous_ns, counting_since_ns), covered_to_ns - 1) as f,
    not begins and ({fell}) as fallen,
    case when clock_step then f else greatest(f, least(t, covered_from_ns)) end as lost_until,
    case when clock_step then greatest(0, least(t - f, window_end_ns - window_start_ns)) / (t - f)
      else 1.0 end as observed,
    {starts}
  from pairs
), cuts as (
  select *, greatest(f, m * 60000000000) as a, least(t, (m + 1) * 60000000000) as z,
    greatest(0, least(z, lost_until) - a) as lost_ns
  from (select *, unnest(generate_series(f // 60000000000, (t - 1) // 60000000000)) as m
        from pieces)
)
select to_timestamp(m * 60)::timestamptz as minute, {key},
  max_by({{'v': broker}}, z).v, max_by({{'v': evidence}}, z).v,
  min(a)::bigint as from_ns, max(z)::bigint as to_ns,
  sum(trunc((z - a - lost_ns) * observed)::bigint)::bigint as covered_ns,
  least(1.0, covered_ns / (to_ns - from_ns)),
  sum((z = t)::int)::bigint, sum((lost_ns > 0)::int)::bigint, sum((restart and a = f)::int)::bigint,
  sum((fallen and z = t)::int)::bigint, sum((clock_step and z = t)::int)::bigint,
  {values}
from cuts group by all order by all
"""


def interval_columns(kind: Kind) -> tuple[str, ...]:
    """The columns that are compared, in the order of the oracle's rows."""
    starts = tuple(f"{name}_start" for name in _STARTS[kind])
    oldest = () if kind is Kind.LIMITER else ("oldest_age_max_ns", "backlog_bytes_max")
    names = ("minute", *_KEYS[kind], "broker", "evidence", *_PLACES, *_MARKS)
    return (*names, *_amounts(kind), *_levels(kind), *starts, *oldest)


def interval_oracle(bronze: pa.Table, kind: Kind) -> list[tuple[Any, ...]]:
    """Rows of :func:`interval_columns`, sorted."""
    amounts, levels = _amounts(kind), _levels(kind)
    values = [_amount(name) for name in amounts]
    values += [_level(name, _STARTS[kind]) for name in levels]
    values += [_level_at(name, "min_by", "a") for name in _STARTS[kind]]
    if kind is not Kind.LIMITER:
        values.append("max(if(oldest_age_ns is null, null, greatest(0, oldest_age_ns - (t - z))))")
        ends = ", ".join(_moving("backlog_bytes", instant) for instant in ("a", "z"))
        values.append(f"max(greatest({ends}))")
    query = _SQL.format(
        kind=kind.value,
        key=", ".join(f'"{name}"' for name in _KEYS[kind]),
        previous=", ".join(f'lag("{n}") over stream as p_{n}' for n in (*amounts, *levels)),
        last=", ".join(f"lag({n}) over whole as l_{n}" for n in (*_STARTS[kind], "seq")),
        fell=" or ".join(f"coalesce({n}, 0) < coalesce(p_{n}, 0)" for n in amounts),
        starts=", ".join([*(_start(name, kind) for name in _STARTS[kind]), "true as is_piece"]),
        values=",\n  ".join(values),
    )
    return _rows(query, "bronze", bronze)


def rows_in_order(intervals: pa.Table, kind: Kind) -> list[tuple[Any, ...]]:
    """The same columns of the table itself, sorted alike."""
    names = ", ".join(f'"{name}"' for name in interval_columns(kind))
    query = f"select {names} from intervals where kind = '{kind.value}' order by all"
    return _rows(query, "intervals", intervals)


def _rows(query: str, name: str, table: pa.Table) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register(name, table)
        return connection.execute(query).fetchall()


def _amounts(kind: Kind) -> list[str]:
    return [field.name for field in FIELDS[kind] if field.nature is Nature.CUMULATIVE]


def _levels(kind: Kind) -> list[str]:
    return [field.name for field in FIELDS[kind] if field.nature is Nature.LEVEL]


def _amount(name: str) -> str:
    """The growth in each cut, rounded down so that all cuts of a piece add up to the whole."""
    grown = f"({name} - case when begins or fallen then 0 else p_{name} end)::hugeint"
    until, after = f"({grown} * (z - f)) // (t - f)", f"({grown} * (a - f)) // (t - f)"
    return f"sum({until} - {after})::bigint"


def _level(name: str, starts: tuple[str, ...]) -> str:
    if name in starts:
        return _level_at(name, "max_by", "z")
    reached = f'case when z = t or begins then "{name}" else p_{name} end'
    return f"max_by({{'v': {reached}}}, z).v"


def _level_at(name: str, pick: str, instant: str) -> str:
    """A level that moves evenly within a piece."""
    return f"{pick}({{'v': {_moving(name, instant)}}}, {instant}).v"


def _moving(name: str, instant: str) -> str:
    # What the row before lacks was 0 there.
    before = f"coalesce(s_{name}, 0)"
    return f"{before} + floor(({name} - {before}) * (({instant} - f) / (t - f)))::bigint"


def _start(name: str, kind: Kind) -> str:
    """A level at a piece's start: of the row or the boot before, or what the counts leave."""
    if name == "backlog_messages":
        guess = f"{name} - {_NET}"
    elif kind is Kind.SUBSCRIPTION:
        guess = f"case when backlog_messages <= {_NET} then 0 else {name} end"
    else:
        guess = name
    return (
        f"case when not begins then p_{name} when restart then l_{name} else {guess} end"
        f" as s_{name}"
    )
