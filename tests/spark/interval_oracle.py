"""What ``intervals`` must hold, computed by DuckDB in a way of its own.

One SQL statement over the bronze rows of subscriptions that always changed (so that no row is
implied): neighbours by ``lag``, minutes by ``generate_series``, exact whole-number arithmetic.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

ORACLE_COLUMNS = (
    "topic",
    "subscription",
    "minute",
    "appended",
    "acked",
    "msgs_out",
    "state_no_permits_ns",
    "state_throttled_topic_messages_hungry_ns",
    "from_ns",
    "to_ns",
    "covered_ns",
    "backlog_messages_start",
    "backlog_messages",
    "restarts",
)
"""The columns that are compared, in the order of the oracle's rows."""

_AMOUNTS = (
    "appended",
    "acked",
    "msgs_out",
    "state_no_permits_ns",
    "state_throttled_topic_messages_hungry_ns",
)

_SQL = """
with rows as (
  select distinct on (source, boot_id, seq, "row") * from bronze where kind = 'subscription'
), pairs as (
  select *,
    lag(covered_to_ns) over stream as previous_ns,
    lag(backlog_messages) over stream as previous_backlog,
    lag(backlog_messages) over whole as last_backlog,
    {lags}
  from rows
  window stream as (partition by topic, subscription, boot_id order by seq),
         whole as (partition by topic, subscription order by counting_since_ns, seq)
), pieces as (
  select *,
    coalesce(previous_ns, counting_since_ns) as f, covered_to_ns as t,
    greatest(covered_from_ns, coalesce(previous_ns, counting_since_ns)) as lost_until,
    coalesce(previous_backlog, last_backlog, 0) as b0,
    previous_ns is null and last_backlog is not null as restart
  from pairs
), cuts as (
  select *, greatest(f, m * 60000000000) as a, least(t, (m + 1) * 60000000000) as z
  from (select *, unnest(generate_series(f // 60000000000, (t - 1) // 60000000000)) as m
        from pieces)
)
select topic, subscription, to_timestamp(m * 60)::timestamptz as minute, {sums},
  min(a)::bigint, max(z)::bigint,
  sum((z - a) - greatest(0, least(z, lost_until) - a))::bigint,
  arg_min(b0 + ((backlog_messages - b0)::hugeint * (a - f)) // (t - f), a)::bigint,
  arg_max(b0 + ((backlog_messages - b0)::hugeint * (z - f)) // (t - f), z)::bigint,
  sum((restart and a = f)::int)::bigint
from cuts group by topic, subscription, m order by all
"""


def interval_oracle(bronze: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`ORACLE_COLUMNS`, sorted."""
    lags = ", ".join(f"{n} - coalesce(lag({n}) over stream, 0) as d_{n}" for n in _AMOUNTS)
    sums = ", ".join(
        f"sum((d_{n}::hugeint * (z - f)) // (t - f) - (d_{n}::hugeint * (a - f)) // (t - f))"
        "::bigint"
        for n in _AMOUNTS
    )
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("bronze", bronze)
        return connection.execute(_SQL.format(lags=lags, sums=sums)).fetchall()
