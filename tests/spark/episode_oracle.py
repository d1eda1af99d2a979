"""The expected rows of ``episodes`` and the views, computed independently by DuckDB.

Episodes are found over whole histories by a running sum of beginnings, then cut at hours; blame is
summed from the states in ``intervals``, not from shares.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headgate.flow.account.verdict import BLAME
from headgate.pipeline.tables.attribution import BLAMES
from headgate.record.fields import PARK_CAUSES, STATE_FIELD_NAMES
from tests.spark.quota_oracle import run_sql

_BLAME_NAMES = tuple(f"blame_{blame.lower()}_ns" for blame in BLAMES)

SEGMENT_COLUMNS = (
    "date",
    "hour",
    "topic",
    "subscription",
    "segment_start_ns",
    "segment_end_ns",
    "continues_before",
    "continues_after",
    "is_open",
    "minutes",
    "peak_backlog_messages",
    "peak_minute",
    "growth_messages",
    "oldest_age_max_ns",
    *_BLAME_NAMES,
    "cause",
    "evidence",
)
"""The columns of ``episodes`` that are compared, in the order of the oracle's rows."""


def _time_of(blame: str) -> str:
    """A minute's nanoseconds in the states of one class."""
    own = [n for n, verdict in zip(STATE_FIELD_NAMES, BLAME, strict=True) if verdict.value == blame]
    return "(" + " + ".join(f"coalesce({name}, 0)" for name in own) + ")"


def _blamed(blame: str) -> str:
    """A minute's nanoseconds of one class; those of a limiter that stood by are the consumer's, and
    a minute without a backlog is nobody's."""
    if blame == "NONE":
        every = " + ".join(_time_of(each) for each in BLAMES)
        return f"case when verdict = 'NONE' then {every} else {_time_of(blame)} end"
    return f"case when verdict = 'NONE' then 0 else {_stated(blame)} end"


def _stated(blame: str) -> str:
    time = _time_of(blame)
    if blame == "CONSUMER":
        held = " ".join(
            f"when '{other}' then {_time_of(other)}"
            for other in BLAMES
            if other.startswith("THROTTLED")
        )
        return f"{time} + case when bystander then case second {held} else 0 end else 0 end"
    if blame.startswith("THROTTLED"):
        return f"case when bystander and second = '{blame}' then 0 else {time} end"
    return time


_CAUSE = "list_max([{}])".format(
    ", ".join(
        f"{{'ns': sum(blame_{blame.lower()}_ns), 'place': -{place}, 'cause': '{blame}'}}"
        for place, blame in enumerate(BLAMES)
        if blame != "NONE"
    )
)

_MINUTES_SQL = f"""
create table minutes as
with judged as (
  select a.cluster, a.topic, a.subscription, a.minute, a.from_ns, a.to_ns, a.verdict,
    a.growth_messages as growth, a.backlog_messages as backlog, a.oldest_age_max_ns as oldest,
    -- What is skipped counts delayed messages, and a backlog does not.
    i.skipped > 0 and i.skipped + a.acked >= i.backlog_messages_start as skips,
    coalesce(i.evicted, 0) + coalesce(i.expired, 0) > 0 or
      coalesce(a.oldest_age_max_ns, 0) >= 10000000000
      or a.backlog_messages > a.acked * 10e9 / (a.to_ns - a.from_ns) as is_substantial,
    a.from_ns // 60000000000 as n, coalesce(i.evidence, 'measured') as evidence,
    {", ".join(f"{_blamed(b)} as blame_{b.lower()}_ns" for b in BLAMES)}
  from attribution a join intervals i on i.kind = 'subscription' and i.cluster = a.cluster
    and i.topic = a.topic and i.subscription = a.subscription and i.minute = a.minute
), backlogs as (
  select *, lag(n) over w as last_n,
    (select max(s.n) from judged s where s.cluster = judged.cluster and s.topic = judged.topic
       and s.subscription = judged.subscription and s.skips and s.n < judged.n) as last_skip
  from judged where verdict <> 'NONE'
  window w as (partition by cluster, topic, subscription order by n)
), begun as (
  select *, sum((last_n is null or n - last_n > 3 or coalesce(last_skip >= last_n, false))::int)
      over (partition by cluster, topic, subscription order by n) as episode
  from backlogs
), spans as (
  select cluster, topic, subscription, episode, min(n) as first_n, max(n) as last_n,
    count(*) as minutes
  from begun group by all having count(*) >= 3 or bool_or(is_substantial)
)
select judged.*, episode, first_n, last_n
from judged join spans using (cluster, topic, subscription)
where judged.n between first_n and last_n
"""

_SEGMENTS_SQL = f"""
with cut as (
  select cluster, topic, subscription, episode, first_n, last_n, n // 60 as h,
    min(from_ns) as begins, max(to_ns) as ends,
    count(*) filter (verdict <> 'NONE') as minutes,
    max(backlog) as peak, arg_max(minute, (backlog, -n)) as peak_minute,
    arg_max(backlog, n) - arg_min(backlog - growth, n) as growth, max(oldest) as oldest,
    {", ".join(f"sum({name})::bigint as {name}" for name in _BLAME_NAMES)},
    {_CAUSE} as cause, max(evidence) as e, bool_or(skips and n = last_n) as skipped
  from minutes group by all
), newest as (select cluster, max(from_ns // 60000000000) as n from attribution group by all)
select to_timestamp(h * 3600)::date, (h % 24)::int, topic, subscription,
  case when first_n < h * 60 then h * 3600000000000 else begins end,
  case when last_n >= (h + 1) * 60 then (h + 1) * 3600000000000 else ends end,
  first_n < h * 60, last_n >= (h + 1) * 60,
  last_n < (h + 1) * 60 and not skipped and newest.n - last_n <= 2,
  minutes, peak, peak_minute, growth, oldest, {", ".join(_BLAME_NAMES)},
  case when cause.ns > 0 then cause.cause end, e
from cut join newest using (cluster) order by all
"""

EPISODE_COLUMNS = (
    "topic",
    "subscription",
    "episode_start_ns",
    "episode_end_ns",
    "is_open",
    "minutes",
    "peak_backlog_messages",
    "peak_minute",
    "growth_messages",
    *_BLAME_NAMES,
    "cause",
)
"""The columns of the view ``backlog_episodes`` that are compared."""

_EPISODES_SQL = f"""
select topic, subscription, min(from_ns),
  case when newest.n - last_n <= 2 and not bool_or(skips and n_ = last_n) then null
       else max(to_ns) end,
  newest.n - last_n <= 2 and not bool_or(skips and n_ = last_n),
  count(*) filter (verdict <> 'NONE'), max(backlog), arg_max(minute, (backlog, -n_)),
  arg_max(backlog, n_) - arg_min(backlog - growth, n_),
  {", ".join(f"sum({name})::bigint" for name in _BLAME_NAMES)},
  case when ({_CAUSE}).ns > 0 then ({_CAUSE}).cause end
from (select *, n as n_ from minutes)
  join (select cluster, max(from_ns // 60000000000) as n from attribution group by all) newest
  using (cluster)
group by cluster, topic, subscription, episode, first_n, last_n, newest.n
order by all
"""

ROLLUP_COLUMNS = (
    "cluster",
    "namespace",
    "minute",
    "topics",
    "subscriptions",
    "msgs_in",
    "bytes_in",
    "msgs_out",
    "backlog_messages",
    "backlog_bytes",
    "evicted_messages",
    *(f"parked_{cause}_s" for cause in PARK_CAUSES),
    "parked_s",
)
"""The columns of the view ``namespace_rollup`` that are compared exactly."""

_ROLLUP_SQL = f"""
select cluster, split_part(topic, '/', 3) || '/' || split_part(topic, '/', 4) as namespace, minute,
  count(*) filter (kind = 'topic'), count(*) filter (kind = 'subscription'),
  sum(msgs_in)::bigint, coalesce(sum(bytes_in), 0)::bigint,
  coalesce(sum(msgs_out) filter (kind = 'topic'), 0)::bigint,
  coalesce(sum(greatest(coalesce(backlog_messages, 0) - coalesce(delayed, 0), 0)), 0)::bigint,
  coalesce(sum(backlog_bytes) filter (kind = 'topic'), 0)::bigint,
  (coalesce(sum(eviction_size_messages), 0) + coalesce(sum(eviction_time_messages), 0))::bigint,
  {", ".join(f"coalesce(sum(parked_{cause}_ns), 0) / 1e9" for cause in PARK_CAUSES)},
  ({" + ".join(f"coalesce(sum(parked_{cause}_ns), 0) / 1e9" for cause in PARK_CAUSES)})
from intervals where kind <> 'limiter'
group by 1, 2, 3 having count(*) filter (kind = 'topic') > 0 order by all
"""


def segment_oracle(intervals: pa.Table, attribution: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`SEGMENT_COLUMNS`, sorted."""
    return run_sql(_MINUTES_SQL, _SEGMENTS_SQL, intervals=intervals, attribution=attribution)


def episode_oracle(intervals: pa.Table, attribution: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`EPISODE_COLUMNS`, sorted."""
    return run_sql(_MINUTES_SQL, _EPISODES_SQL, intervals=intervals, attribution=attribution)


def rollup_oracle(intervals: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`ROLLUP_COLUMNS`, sorted."""
    return run_sql(_ROLLUP_SQL, intervals=intervals)


BLAMED_SQL = """
with blamed as (
  select accounted_ns / 1e9 as seconds, share_consumer as consumer,
    share_throttled_subscription + share_throttled_topic + share_throttled_broker as throttled,
    case when bystander then case second
        when 'THROTTLED_SUBSCRIPTION' then share_throttled_subscription
        when 'THROTTLED_TOPIC' then share_throttled_topic
        when 'THROTTLED_BROKER' then share_throttled_broker
      end else 0 end as stood_by
  from attribution where verdict <> 'NONE'
)
select sum((consumer + stood_by) * seconds), sum((throttled - stood_by) * seconds) from blamed
"""
"""Seconds blamed on consumers and on limits, over all there is."""
