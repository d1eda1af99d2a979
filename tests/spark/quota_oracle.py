"""What ``quota_usage`` and ``evictions`` must hold, computed by DuckDB in a way of its own.

The first statement is over ``intervals``, the second over ``bronze_events``, whose JSON DuckDB
itself takes apart. Forecasts have an oracle of their own, ``forecast_oracle``.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

USAGE_COLUMNS = (
    "date",
    "hour",
    "minute",
    "topic",
    "partition",
    "to_ns",
    "backlog_bytes",
    "backlog_bytes_max",
    "oldest_age_ns",
    "size_limit_bytes",
    "size_policy",
    "size_use",
    "size_use_max",
    "time_limit_ns",
    "time_source",
    "time_use",
    "time_use_max",
    "seconds_to_breach_broker",
    "eviction_time_messages",
    "held_seconds",
    "parked_messages",
)
"""The columns of ``quota_usage`` that are compared, in the order of the oracle's rows."""

_USAGE_SQL = """
with topics as (
  select *,
    quota_size_breach_ns as s, quota_time_breach_ns as t,
    quota_size_limit_bytes is not null as has_size, quota_time_limit_ns is not null as has_time,
    coalesce(eviction_size_acts, 0) + coalesce(eviction_time_acts, 0)
      + coalesce(parked_backlog_quota_ns, 0) > 0 as acted
  from intervals where kind = 'topic'
)
select date, hour, minute, topic, partition, to_ns, backlog_bytes, backlog_bytes_max, oldest_age_ns,
  quota_size_limit_bytes, quota_size_policy,
  backlog_bytes::double / nullif(quota_size_limit_bytes, 0),
  backlog_bytes_max::double / nullif(quota_size_limit_bytes, 0),
  quota_time_limit_ns, quota_time_source,
  coalesce(oldest_age_ns, 0)::double / nullif(quota_time_limit_ns, 0),
  coalesce(oldest_age_max_ns, 0)::double / nullif(quota_time_limit_ns, 0),
  least(case when has_size then s end, case when has_time then t end) / 1e9,
  eviction_time_messages, parked_backlog_quota_ns / 1e9, parked_backlog_quota_messages
from topics where has_size or has_time or acted
order by all
"""

EVICTION_COLUMNS = (
    "date",
    "hour",
    "time_ns",
    "topic",
    "partition",
    "incarnation",
    "boot_id",
    "quota",
    "quota_source",
    "limit_ns",
    "backlog_bytes_start",
    "backlog_bytes",
    "acts",
    "messages",
    "bytes",
    "subscriptions_count",
)
"""The columns of ``evictions`` that are compared, in the order of the oracle's rows."""

_EVICTIONS_SQL = """
with events as (
  select distinct on (source, boot_id, seq, "row") * from events where event = 'eviction'
)
select date, hour, time_ns, regexp_replace(topic, '-partition-[0-9]+$', ''),
  nullif(regexp_extract(topic, '-partition-([0-9]+)$', 1), '')::bigint, incarnation, boot_id,
  inputs ->> '$.quota', inputs ->> '$.source', (inputs ->> '$.limit_ns')::bigint,
  (inputs ->> '$.backlog_bytes')::bigint, (outcome ->> '$.backlog_bytes')::bigint,
  (outcome ->> '$.acts')::bigint, (outcome ->> '$.messages')::bigint,
  (outcome ->> '$.bytes')::bigint,
  json_array_length(outcome -> '$.subscriptions')::bigint
    + (outcome ->> '$.subscriptions_more')::bigint
from events order by all
"""


def usage_oracle(intervals: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`USAGE_COLUMNS`, sorted."""
    return run_sql(_USAGE_SQL, intervals=intervals)


def evictions_oracle(events: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`EVICTION_COLUMNS`, sorted."""
    return run_sql(_EVICTIONS_SQL, events=events)


def rows_in_order(rows: pa.Table, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Some columns of a table, in the order of the oracles' rows."""
    return run_sql(f"select {', '.join(columns)} from found order by all", found=rows)


def run_sql(*statements: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of the last of some statements over tables, whose names are theirs."""
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        for statement in statements:
            connection.execute(statement)
        return connection.fetchall()
