"""What ``publish_attribution`` and ``throttle_timeline`` must hold, computed by DuckDB in a way of
its own: over ``intervals``, and over the rows of ``bronze_samples``, told twice or not.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headgate.record.fields import PARK_CAUSES
from tests.spark.quota_oracle import run_sql

PUBLISH_COLUMNS = (
    "date",
    "hour",
    "minute",
    "topic",
    "partition",
    "incarnation",
    "broker",
    "completeness",
    "from_ns",
    "to_ns",
    "msgs_in",
    "bytes_in",
    "producers",
    *(f"parked_{cause}_ns" for cause in PARK_CAUSES),
    "parked_topic_rate_messages",
    "parked_backlog_quota_bytes",
    "publish_limit_messages_per_s",
    "publish_limit_source",
    "evidence",
    "cause",
    "second_cause",
    "held_share",
)
"""The columns of ``publish_attribution`` that are compared, in the order of the oracle's rows."""

_OWN = PUBLISH_COLUMNS[: PUBLISH_COLUMNS.index("evidence")]
_HELD = ", ".join(
    f"{{'ns': coalesce(parked_{cause}_ns, 0), 'place': -{place}, 'cause': '{cause}'}}"
    for place, cause in enumerate(PARK_CAUSES)
)

_COUNTED = "case when gaps > 0 then to_ns - from_ns else least(covered_ns, to_ns - from_ns) end"
"""Lost rows are counted by the next one; what else is not covered was counted by nobody."""

_PUBLISH_SQL = f"""
with topics as (
  select *, {_COUNTED} as counted,
    list_reverse_sort(list_filter([{_HELD}], lambda each: each.ns > 0)) as held,
    coalesce(parked_topic_rate_messages, 0) + coalesce(parked_broker_rate_messages, 0)
      + coalesce(parked_adaptive_messages, 0) + coalesce(parked_backlog_quota_messages, 0)
      + coalesce(parked_pending_limit_messages, 0) as waiting
  from intervals where kind = 'topic'
)
select {", ".join(_OWN)}, coalesce(evidence, 'measured'), held[1].cause, held[2].cause,
  case when counted > 0 then least(1, coalesce(held[1].ns, 0)::double / counted) end
from topics
where msgs_in > 0 or len(held) > 0 or waiting > 0
order by all
"""

TIMELINE_COLUMNS = (
    "date",
    "hour",
    "minute",
    "level",
    "subject",
    "dimension",
    "counted_ns",
    "limit_per_s",
    "limit_source",
    "offered",
    "granted",
    "held",
    "waiting_ns",
    "waiting_share",
    "waiters_max",
    "use",
    "waiters",
)
"""The columns of ``throttle_timeline`` that are compared, in the order of the oracle's rows."""

_TIMELINE_SQL = f"""
with once as (
  select distinct on (source, boot_id, seq, "row") *,
    to_timestamp((covered_to_ns - 1) // 60000000000 * 60) as minute
  from bronze where kind = 'limiter'
), peaks as (
  select level, subject, dimension, minute, max(waiters_max) as peak
  from once where waiter_1 is not null group by all
), names as (
  select level, subject, dimension, minute,
    unnest([waiter_1, waiter_2, waiter_3, waiter_4, waiter_5]) as waiter,
    unnest([waiter_1_amount, waiter_2_amount, waiter_3_amount, waiter_4_amount, waiter_5_amount])
      as amount
  from once
), sums as (
  select level, subject, dimension, minute, waiter, sum(amount)::bigint as granted
  from names where waiter is not null group by all
), waiters as (
  select level, subject, dimension, minute,
    '[' || string_agg('{{"waiter": "' || waiter || '", "granted": ' || granted || '}}', ', '
                      order by granted desc, waiter) || ']' as waiters
  from sums group by all
)
select date, hour, minute, level, subject, dimension, ({_COUNTED})::bigint,
  "limit" * 1e9 / limit_period_ns, limit_source, offered, granted,
  greatest(0, offered - granted), waiting_ns, least(1, waiting_ns::double / ({_COUNTED})),
  coalesce(peak, waiters_max),
  granted / ("limit" * 1e9 / limit_period_ns * ({_COUNTED}) / 1e9), waiters
from intervals left join peaks using (level, subject, dimension, minute)
  left join waiters using (level, subject, dimension, minute)
where kind = 'limiter'
order by all
"""


def publish_oracle(intervals: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`PUBLISH_COLUMNS`, sorted."""
    return run_sql(_PUBLISH_SQL, intervals=intervals)


def timeline_oracle(intervals: pa.Table, bronze: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`TIMELINE_COLUMNS`, sorted."""
    return run_sql(_TIMELINE_SQL, intervals=intervals, bronze=bronze)
