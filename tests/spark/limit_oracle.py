"""The expected rows of ``publish_attribution`` and ``throttle_timeline``, computed by DuckDB.

The sources are ``intervals`` and ``bronze_samples``, with or without repeated messages.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from headgate.record.fields import PARK_CAUSES
from tests.spark.quota_oracle import compared_columns, run_sql, values_of

PUBLISH_COLUMNS = compared_columns(PUBLISH_ATTRIBUTION)
"""The columns of ``publish_attribution`` that are compared, in the order of the oracle's rows."""

_HELD = ", ".join(
    f"{{'ns': coalesce(parked_{cause}_ns, 0), 'place': -{place}, 'cause': '{cause}'}}"
    for place, cause in enumerate(PARK_CAUSES)
)

_COUNTED = "case when gaps > 0 then to_ns - from_ns else least(covered_ns, to_ns - from_ns) end"
"""Lost rows are counted by the next one; what else is not covered was counted by nobody."""

_PUBLISH_VALUES = {
    "evidence": "coalesce(evidence, 'measured')",
    "cause": "held[1].cause",
    "second_cause": "held[2].cause",
    "held_share": "case when counted > 0"
    " then least(1, coalesce(held[1].ns, 0)::double / counted) end",
}

_PUBLISH_SQL = f"""
with topics as (
  select *, {_COUNTED} as counted,
    list_reverse_sort(list_filter([{_HELD}], lambda each: each.ns > 0)) as held,
    coalesce(parked_topic_rate_messages, 0) + coalesce(parked_broker_rate_messages, 0)
      + coalesce(parked_adaptive_messages, 0) + coalesce(parked_backlog_quota_messages, 0)
      + coalesce(parked_pending_limit_messages, 0) + coalesce(parked_disk_full_messages, 0)
      as waiting
  from intervals where kind = 'topic'
)
select {values_of(PUBLISH_COLUMNS, _PUBLISH_VALUES)} from topics
where msgs_in > 0 or bytes_in > 0 or len(held) > 0 or waiting > 0 or duplicates_dropped > 0
order by all
"""

TIMELINE_COLUMNS = compared_columns(THROTTLE_TIMELINE)
"""The columns of ``throttle_timeline`` that are compared, in the order of the oracle's rows."""

_PER_S = '"limit" * 1e9 / limit_period_ns'
_TIMELINE_VALUES = {
    "counted_ns": f"({_COUNTED})::bigint",
    "limit_per_s": _PER_S,
    "held": "greatest(0, offered - granted)",
    "waiting_share": f"least(1, waiting_ns::double / ({_COUNTED}))",
    "waiters_max": "coalesce(peak, waiters_max)",
    "use": f"granted / ({_PER_S} * ({_COUNTED}) / 1e9)",
    "waiters": "waiters",
}
_LIMITER = "cluster, level, subject, dimension, incarnation, minute"

_TIMELINE_SQL = f"""
with once as (
  select distinct on (source, boot_id, seq, "row") *,
    to_timestamp((covered_to_ns - 1) // 60000000000 * 60) as minute
  from bronze where kind = 'limiter'
), peaks as (
  select {_LIMITER}, max(waiters_max) as peak
  from once where waiter_1 is not null group by all
), names as (
  select {_LIMITER},
    unnest([waiter_1, waiter_2, waiter_3, waiter_4, waiter_5]) as waiter,
    unnest([waiter_1_amount, waiter_2_amount, waiter_3_amount, waiter_4_amount, waiter_5_amount])
      as amount
  from once
), sums as (
  select {_LIMITER}, waiter, sum(amount)::bigint as granted
  from names where waiter is not null group by all
), waiters as (
  select {_LIMITER},
    '[' || string_agg('{{"waiter": "' || waiter || '", "granted": ' || granted || '}}', ', '
                      order by granted desc, waiter) || ']' as waiters
  from sums group by all
)
select {values_of(TIMELINE_COLUMNS, _TIMELINE_VALUES)}
from intervals left join peaks using ({_LIMITER}) left join waiters using ({_LIMITER})
where kind = 'limiter'
order by all
"""


def publish_oracle(intervals: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`PUBLISH_COLUMNS`, sorted."""
    return run_sql(_PUBLISH_SQL, intervals=intervals)


def timeline_oracle(intervals: pa.Table, bronze: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`TIMELINE_COLUMNS`, sorted."""
    return run_sql(_TIMELINE_SQL, intervals=intervals, bronze=bronze)
