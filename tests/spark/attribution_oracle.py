"""The expected rows of ``attribution`` and ``demonstrated_rates``, by DuckDB from ``intervals``.

The verdict law of the documentation (docs/telemetry.md, section 1) as one SQL statement: states are
blamed by name, the largest is found by comparing nanoseconds, rates are taken from sorted windows.
All columns but the sentence, which is words about these.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

ATTRIBUTION_COLUMNS = (
    *("date", "hour", "minute", "cluster", "topic", "partition", "subscription", "incarnation"),
    *("broker", "growth_messages", "backlog_messages", "delayed_messages", "residual_messages"),
    *("appended", "acked", "evicted", "expired"),
    *("from_ns", "to_ns", "oldest_age_max_ns", "share_none", "share_consumer"),
    *("share_no_consumer", "share_throttled_subscription", "share_throttled_topic"),
    *("share_throttled_broker", "share_broker", "verdict", "second", "bystander", "dimension"),
    *("proven_rate_per_s", "grows_without_limit", "confidence", "completeness", "accounted_ns"),
    "evidence",
)
"""The columns that are compared, in the order of the oracle's rows."""


def _held(level: str, dimension: str, consumer: str) -> str:
    return f"coalesce(state_throttled_{level}_{dimension}_{consumer}_ns, 0)"


def _blamed() -> str:
    """Nanoseconds by whom they blame, and those that each limiter held by what it counts."""
    consumer = ["awaiting_ack", "unacked_limit", "no_permits", "socket_full", "key_blocked"]
    levels = ("subscription", "topic", "broker")
    busy = [_held(level, d, "busy") for level in levels for d in ("messages", "bytes")]
    plain = [f"coalesce(state_{name}_ns, 0)" for name in consumer]
    lines = [
        "coalesce(state_caught_up_ns, 0) + coalesce(state_not_due_ns, 0) as nobody",
        " + ".join([*plain, *busy]) + " as consumer",
        "coalesce(state_no_consumer_ns, 0) as no_consumer",
        "coalesce(state_transition_ns, 0) as transition_ns",
        "coalesce(state_stuck_ns, 0) as stuck_ns",
        "transition_ns + coalesce(state_storage_ns, 0) + coalesce(state_dispatching_ns, 0)"
        " + stuck_ns as broker_ns",
    ]
    for level in levels:
        hungry = [_held(level, d, "hungry") for d in ("messages", "bytes")]
        lines.append(f"{hungry[0]} + {hungry[1]} as by_{level}")
        lines += [
            f"{_held(level, d, 'hungry')} + {_held(level, d, 'busy')} as {level}_{d}"
            for d in ("messages", "bytes")
        ]
        lines += [
            f"case when limit_{level}_{d} > 0 then limit_{level}_{d} * 1e9"
            f" / coalesce(nullif(limit_{level}_period_ns, 0), 1000000000) end as {level}_{d}_per_s"
            for d in ("messages", "bytes")
        ]
    return ",\n    ".join(lines)


def _counts() -> str:
    names = ("appended", "rewound", "acked", "skipped", "expired", "evicted", "msgs_out")
    more = ("bytes_out", "unacked_start", "unacked", "oldest_age_max_ns")
    return ", ".join(f"coalesce({name}, 0) as {name}" for name in (*names, *more))


def _shares() -> str:
    blamed = ("consumer", "no_consumer", "by_subscription", "by_topic", "by_broker", "broker_ns")
    return ", ".join(f"case when total = 0 then 0.0 else {name} / total end" for name in blamed)


_KEY = 'cluster, topic, "partition", subscription, incarnation'

_MINUTES = f"""
with counted as (
  select date, hour, minute, {_KEY}, broker, from_ns, to_ns, covered_ns,
    coalesce(evidence, 'measured') as evidence,
    from_ns // 3600000000000 as number,
    -- A delayed message is no backlog until it is due, and arrives then.
    greatest(0, least(coalesce(delayed_start, 0), coalesce(backlog_messages_start, 0))) as d0,
    greatest(0, least(coalesce(delayed, 0), coalesce(backlog_messages, 0))) as d1,
    coalesce(backlog_messages_start, 0) - d0 as b0, coalesce(backlog_messages, 0) - d1 as b1,
    {_counts()},
    {_blamed()}
  from intervals where kind = 'subscription'
), minutes as (
  select *, b1 - b0 as growth, growth + d1 - d0 as whole_growth,
    greatest(0, appended - d1 + d0) as arrived,
    nobody + consumer + no_consumer + broker_ns + by_subscription + by_topic + by_broker as total,
    -- What the account adds up to: it goes over rows that were lost, as the amounts do.
    greatest(1, case when total > 0 then total else covered_ns end) as window_ns,
    greatest(consumer, no_consumer, by_subscription, by_topic, by_broker, broker_ns) as most
  from counted
)
"""

_PROVING = f"""
  select {_KEY}, from_ns // 60000000000 as minute_number, acked * 1e9 / window_ns as rate
  from minutes
  where (covered_ns > 0 or total > 0) and b0 > 0 and b1 > 0 and oldest_age_max_ns >= 2000000000
    and evicted + expired = 0
    and nobody + no_consumer + subscription_messages + subscription_bytes + topic_messages
      + topic_bytes + broker_messages + broker_bytes + transition_ns + stuck_ns
      <= 0.05 * window_ns
"""
"""The minutes that demonstrate a rate."""

SQL = f"""
{_MINUTES}, proving as (
  {_PROVING}
  union all
  select distinct {_KEY}, from_ns // 60000000000, null from minutes
), proven as (
  select {_KEY}, minute_number, any_value(rate) as rate from (
    -- The smallest rate that more than 95 in 100 do not exceed, of the minutes up to this one in
    -- its hour and in the 24 hours before that.
    select {_KEY}, minute_number, quantile_disc(rate, 0.950001) over (
      partition by {_KEY} order by minute_number
      range between (minute_number % 60 + 1440) preceding and current row) as rate
    from proving)
  group by all
), ranked as (
  select *,
    case most
      when 0 then 'NONE' when consumer then 'CONSUMER' when no_consumer then 'NO_CONSUMER'
      when by_subscription then 'THROTTLED_SUBSCRIPTION' when by_topic then 'THROTTLED_TOPIC'
      when by_broker then 'THROTTLED_BROKER' else 'BROKER' end as first,
    evicted + expired = 0 and (oldest_age_max_ns <= 250000000 or (oldest_age_max_ns < 2000000000
      and (window_ns > 20000000000
        or growth <= greatest(1.0, arrived * 250000000.0 / window_ns)))) as healthy
  from minutes
), seconds as (
  select *,
    case when first = 'CONSUMER' then -1 else consumer end as c1,
    case when first = 'NO_CONSUMER' then -1 else no_consumer end as c2,
    case when first = 'THROTTLED_SUBSCRIPTION' then -1 else by_subscription end as c3,
    case when first = 'THROTTLED_TOPIC' then -1 else by_topic end as c4,
    case when first = 'THROTTLED_BROKER' then -1 else by_broker end as c5,
    case when first = 'BROKER' then -1 else broker_ns end as c6,
    greatest(c1, c2, c3, c4, c5, c6) as runner_up,
    case when first = 'NONE' then 0.0
      else most / greatest(total, 1) - runner_up / greatest(total, 1) end as margin,
    case when runner_up <= 0 or margin > 0.05 then null
      when runner_up = c1 then 'CONSUMER' when runner_up = c2 then 'NO_CONSUMER'
      when runner_up = c3 then 'THROTTLED_SUBSCRIPTION' when runner_up = c4 then 'THROTTLED_TOPIC'
      when runner_up = c5 then 'THROTTLED_BROKER' else 'BROKER' end as close_second
  from ranked
), limiters as (
  select *,
    case when starts_with(first, 'THROTTLED') then first
      when starts_with(close_second, 'THROTTLED') and first <> 'NONE' then close_second
      end as limiter,
    case limiter
      when 'THROTTLED_SUBSCRIPTION' then subscription_bytes > subscription_messages
      when 'THROTTLED_TOPIC' then topic_bytes > topic_messages
      when 'THROTTLED_BROKER' then broker_bytes > broker_messages end as in_bytes,
    case limiter
      when 'THROTTLED_SUBSCRIPTION' then
        case when in_bytes then subscription_bytes_per_s else subscription_messages_per_s end
      when 'THROTTLED_TOPIC' then
        case when in_bytes then topic_bytes_per_s else topic_messages_per_s end
      when 'THROTTLED_BROKER' then
        case when in_bytes then broker_bytes_per_s else broker_messages_per_s end
      end as limit_per_s,
    case when in_bytes then
      case when bytes_out > 0 then limit_per_s * msgs_out / bytes_out end
      else limit_per_s end as limit_messages_per_s,
    -- Still with the consumers, or taken out of their hands before they acknowledged it.
    unacked - unacked_start
      + greatest(0, least(evicted + expired, msgs_out - acked - unacked + unacked_start)) as handed,
    coalesce(starts_with(first, 'THROTTLED')
      and handed > greatest(1.0, msgs_out * 250000000.0 / window_ns, 0.05 * msgs_out)
      and (limit_messages_per_s is null or acked * 1e9 / window_ns <= limit_messages_per_s),
      false) as stands_by
  from seconds
), judged as (
  select *, covered_ns / (to_ns - from_ns) as covered_share,
    case evidence when 'measured' then
      whole_growth - (appended + rewound - acked - skipped - expired - evicted) end as residual,
    least(1.0, covered_share) * (1.0 - least(1.0, coalesce(abs(residual), 0) / greatest(1,
      abs(whole_growth), appended + rewound + acked + skipped + expired + evicted))) as sure,
    case evidence when 'inferred' then 0.6 else 1.0 end as certainty
  from limiters
)
select date, hour, minute, j.cluster, j.topic, j."partition", j.subscription, j.incarnation,
  broker, growth, b1, d1, residual, appended, acked, evicted, expired, from_ns, to_ns,
  oldest_age_max_ns,
  case when total = 0 then 1.0 else nobody / total end,
  {_shares()},
  case when healthy then 'NONE' when stands_by then 'CONSUMER' else first end,
  case when healthy then null when stands_by then first else close_second end,
  not healthy and stands_by,
  case when healthy then null when in_bytes then 'bytes' when not in_bytes then 'messages' end,
  p.rate,
  case when not healthy and not stands_by and starts_with(first, 'THROTTLED')
      and p.rate is not null
    then arrived * 1e9 / window_ns > greatest(p.rate, acked * 1e9 / window_ns) end,
  certainty * sure * case
    when healthy then greatest(0.0, least(1.0, 1.0 - oldest_age_max_ns / 2e9))
    when stands_by then case when msgs_out = 0 then 0.0 else least(1.0, handed / msgs_out) end
    else margin end,
  least(1.0, covered_share), window_ns, evidence
from judged j join proven p on j.from_ns // 60000000000 = p.minute_number and j.topic = p.topic
  and j.subscription = p.subscription and j.cluster is not distinct from p.cluster
  and j."partition" is not distinct from p."partition"
  and j.incarnation is not distinct from p.incarnation
"""
"""Over a table ``intervals``; rows of :data:`ATTRIBUTION_COLUMNS`, in no order."""

RATES_COLUMNS = ("date", "hour", "cluster", "topic", "partition", "subscription", "incarnation")
"""Columns of a demonstrated rate, before the minute of the hour and the rate."""

_RATES_SQL = f"""
{_MINUTES}, proving as (
  {_PROVING}
)
select make_date((minute_number // 1440)::integer), (minute_number // 60 % 24)::integer, {_KEY},
  (minute_number % 60)::integer, rate
from proving
"""
"""The rates of ``demonstrated_rates``, each with its minute."""


def attribution_oracle(intervals: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`ATTRIBUTION_COLUMNS`, by minute and subscription."""
    return _rows(SQL, "intervals", intervals)


def rates_oracle(intervals: pa.Table) -> list[tuple[Any, ...]]:
    """The rates of ``demonstrated_rates``: :data:`RATES_COLUMNS`, the minute of the hour, the rate;
    by subscription and time."""
    return _rows(_RATES_SQL, "intervals", intervals, "3, 4, 5, 6, 7, 1, 2, 8")


def rates_in_order(demonstrated: pa.Table) -> list[tuple[Any, ...]]:
    """The same rates of the table itself, in the same order."""
    names = ", ".join(f'"{name}"' for name in RATES_COLUMNS)
    query = f"""
      select {names}, minute::integer - 1, rates_per_s[minute] from demonstrated_rates,
        range(1, len(rates_per_s) + 1) as minutes(minute) where rates_per_s[minute] is not null
    """
    return _rows(query, "demonstrated_rates", demonstrated, "3, 4, 5, 6, 7, 1, 2, 8")


def rows_in_order(attribution: pa.Table) -> list[tuple[Any, ...]]:
    """The same columns of the table itself, in the same order."""
    names = ", ".join(f'"{name}"' for name in ATTRIBUTION_COLUMNS)
    return _rows(f"select {names} from attribution", "attribution", attribution)


def _rows(
    query: str, name: str, table: pa.Table, order: str = "3, 4, 5, 6, 7, 8"
) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register(name, table)
        ordered = f"select * from ({query}) order by {order}"
        rows: list[tuple[Any, ...]] = connection.execute(ordered).fetchall()
        return rows
