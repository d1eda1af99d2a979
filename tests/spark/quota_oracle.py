"""The expected rows of ``quota_usage`` and ``evictions``, computed independently by DuckDB.

The first statement is over ``intervals``, the second over ``bronze_events``, whose JSON DuckDB
itself takes apart. Forecasts have an oracle of their own, ``forecast_oracle``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from headgate.pipeline.tables.columns import Table
from headgate.pipeline.tables.quotas import EVICTIONS, QUOTA_USAGE

FORECAST_COLUMNS = (
    *("seconds_to_breach_earliest", "seconds_to_breach", "seconds_to_breach_latest"),
    *("breach_quota", "method", "forecast_at"),
)
"""The columns of ``quota_usage`` that ``forecast_oracle`` has."""


def compared_columns(table: Table, *elsewhere: str) -> tuple[str, ...]:
    """All columns of a table but sentences, which are words about the others, and those that are
    compared elsewhere: what is added to a table is compared, or no oracle's statement runs."""
    return tuple(n for n in table.column_names() if n not in ("sentence", *elsewhere))


def values_of(columns: Sequence[str], values: Mapping[str, str]) -> str:
    """What to select for columns: a value of its own, or the source's column of that name."""
    return ", ".join(values.get(name, f'"{name}"') for name in columns)


USAGE_COLUMNS = compared_columns(QUOTA_USAGE, *FORECAST_COLUMNS)
"""The columns of ``quota_usage`` that are compared, in the order of the oracle's rows."""

_USAGE_VALUES = {
    "size_limit_bytes": "quota_size_limit_bytes",
    "size_policy": "quota_size_policy",
    "size_source": "quota_size_source",
    "size_use": "backlog_bytes::double / nullif(quota_size_limit_bytes, 0)",
    "size_use_max": "backlog_bytes_max::double / nullif(quota_size_limit_bytes, 0)",
    "time_limit_ns": "quota_time_limit_ns",
    "time_policy": "quota_time_policy",
    "time_source": "quota_time_source",
    "time_use": "coalesce(oldest_age_ns, 0)::double / nullif(quota_time_limit_ns, 0)",
    "time_use_max": "coalesce(oldest_age_max_ns, 0)::double / nullif(quota_time_limit_ns, 0)",
    "seconds_to_breach_broker": "least(case when has_size then s end, case when has_time then t"
    " end) / 1e9",
    "held_seconds": "parked_backlog_quota_ns / 1e9",
    "parked_messages": "parked_backlog_quota_messages",
    "parked_bytes": "parked_backlog_quota_bytes",
}

_USAGE_SQL = f"""
with topics as (
  select *,
    quota_size_breach_ns as s, quota_time_breach_ns as t,
    quota_size_limit_bytes is not null as has_size, quota_time_limit_ns is not null as has_time,
    coalesce(eviction_size_acts, 0) + coalesce(eviction_time_acts, 0)
      + coalesce(parked_backlog_quota_ns, 0) > 0 as acted
  from intervals where kind = 'topic'
)
select {values_of(USAGE_COLUMNS, _USAGE_VALUES)}
from topics where has_size or has_time or acted
order by all
"""

EVICTION_COLUMNS = compared_columns(EVICTIONS)
"""The columns of ``evictions`` that are compared, in the order of the oracle's rows."""

_EVICTION_VALUES = {
    "topic": "regexp_replace(topic, '-partition-[0-9]+$', '')",
    "partition": "nullif(regexp_extract(topic, '-partition-([0-9]+)$', 1), '')::bigint",
    "quota": "inputs ->> '$.quota'",
    "policy": "inputs ->> '$.policy'",
    "quota_source": "inputs ->> '$.source'",
    "limit_bytes": "(inputs ->> '$.limit_bytes')::bigint",
    "limit_ns": "(inputs ->> '$.limit_ns')::bigint",
    "backlog_bytes_start": "(inputs ->> '$.backlog_bytes')::bigint",
    "oldest_age_ns_start": "(inputs ->> '$.oldest_age_ns')::bigint",
    "subscriptions": "(outcome -> '$.subscriptions')::varchar",
    "subscriptions_count": "json_array_length(outcome -> '$.subscriptions')::bigint"
    " + (outcome ->> '$.subscriptions_more')::bigint",
    **{
        name: f"(outcome ->> '$.{name}')::bigint"
        for name in ("backlog_bytes", "oldest_age_ns", "acts", "messages", "bytes")
    },
}

_EVICTIONS_SQL = f"""
with events as (
  select distinct on (source, boot_id, seq, "row") * from events where event = 'eviction'
)
select {values_of(EVICTION_COLUMNS, _EVICTION_VALUES)}
from events order by all
"""


def usage_oracle(intervals: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`USAGE_COLUMNS`, sorted."""
    return run_sql(_USAGE_SQL, intervals=intervals)


def evictions_oracle(events: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`EVICTION_COLUMNS`, sorted."""
    return run_sql(_EVICTIONS_SQL, events=events)


def rows_in_order(rows: pa.Table, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Some columns of a table, in the order of the oracles' rows; JSON without blanks."""
    json = ["subscriptions"] if columns == EVICTION_COLUMNS else []
    values = values_of(columns, {name: f"json({name})::varchar" for name in json})
    return run_sql(f"select {values} from found order by all", found=rows)


def run_sql(*statements: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of the last of some statements over tables, whose names are theirs."""
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        for statement in statements:
            connection.execute(statement)
        return connection.fetchall()
