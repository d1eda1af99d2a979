"""The expected forecasts of ``quota_usage``, computed by DuckDB from ``intervals``.

Every pair of points is a row of a join; quantiles are DuckDB's own.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from headgate.pipeline.kernels.breach import HORIZONS_MINUTES

KEY = ("topic", "partition", "minute")
"""What tells a row of ``quota_usage`` in a test that has one cluster."""

_ROWS_SQL = """
create table points as
with topics as (
  select *, from_ns // 60000000000 as m,
    coalesce(restarts, 0) + coalesce(eviction_size_acts, 0)
      + coalesce(eviction_time_acts, 0) > 0 as anew,
    coalesce(parked_backlog_quota_ns, 0) >= 50000000 as held
  from intervals where kind = 'topic'
), levels as (
  select topic, partition, minute, m, to_ns, anew, 'size' as q, backlog_bytes::double as v,
    quota_size_limit_bytes::double as l, quota_size_breach_ns / 1e9 as b,
    backlog_bytes >= quota_size_limit_bytes as is_over, 'inf'::double as fastest,
    coalesce(eviction_size_acts, 0) > 0 or held and v >= 0.9 * l as acted
  from topics union all
  select topic, partition, minute, m, to_ns, anew, 'time', coalesce(oldest_age_ns, 0) / 1e9
    as v, quota_time_limit_ns / 1e9 as l, quota_time_breach_ns / 1e9,
    oldest_age_ns // 1000000 >= quota_time_limit_ns // 1000000, 1.0,
    coalesce(eviction_time_acts, 0) > 0 or held and v >= 0.9 * l
  from topics
)
select *, l is not null as in_force,
  l is not null and (coalesce(is_over, false) or coalesce(b = 0, false)
    or coalesce(acted, false)) as reached,
  coalesce(max(m) filter (anew_here) over (partition by topic, partition, q order by m), 0) as since
from (
  select *, anew or coalesce(v < 0.5 * lag(v) over (partition by topic, partition, q order by m),
    false) as anew_here
  from levels
);

create table made as
with counted as (
  select p.*, case when p.v is null then 0 else (
      select count(w.v) from points w
      where w.topic = p.topic and w.partition is not distinct from p.partition and w.q = p.q
        and w.m between greatest(p.m - 59, p.since) and p.m
    ) end as samples
  from points p
), fleeting as (
  select *, reached or (in_force and samples < 10) as brief,
    lag(m) over t as m_before, lag(l) over t as l_before
  from counted window t as (partition by topic, partition, q order by m)
), triggers as (
  select *, m_before is null or m_before // 5 <> m // 5 or anew_here or brief
    or coalesce(lag(brief) over (partition by topic, partition, q order by m), false)
    or l is distinct from l_before as fires
  from fleeting
), together as (
  select *, bool_or(fires) over (partition by topic, partition, m) as is_made from triggers
)
select *, max(m) filter (is_made) over (partition by topic, partition, q order by m) as source
from together;
"""

_BANDS_SQL = """
create table due as
select row_number() over () as id, * from made
where m = source and in_force and not reached and samples >= 10;

create table window_points as
select d.id, d.m - w.m as ago, (w.to_ns - d.to_ns) / 1e9 as t, w.v
from due d join points w on w.topic = d.topic and w.partition is not distinct from d.partition
  and w.q = d.q and w.m between greatest(d.m - 59, d.since) and d.m and w.v is not null;

create table paces as
with slopes as (
  select a.id, (b.v - a.v) / (b.t - a.t) as slope, a.ago <= 20 as is_recent
  from window_points a join window_points b on a.id = b.id and b.ago < a.ago
), medians as (
  select id, quantile_cont(slope, 0.5) as whole,
    quantile_cont(slope, 0.5) filter (is_recent) as last
  from slopes group by id
), counts as (
  select id, count(*) as n, count(*) filter (ago <= 20) as n_recent from window_points group by id
)
select id, n, whole, if(n_recent < 10, whole, last) as last, (whole + if(n_recent < 10, whole,
  last)) / 2 as pace from medians join counts using (id);

create table errors as
with moved as (
  select a.id, lag.lag, (b.v - p.pace * b.t) - (a.v - p.pace * a.t) as e, p.n
  from (select unnest([1, 2, 5, 10, 20]) as lag) lag
  join window_points a on true
  join window_points b on a.id = b.id and b.ago = a.ago - lag.lag
  join paces p on p.id = a.id
), known as (
  select id, lag, sqrt(greatest(1 - lag / any_value(n), 0.25)) as shrink,
    greatest(-quantile_cont(e, 0.1), 0) / shrink as below,
    greatest(quantile_cont(e, 0.9), 0) / shrink as above
  from moved group by id, lag having count(*) >= 8
), every as (
  select id, lag from paces, (select unnest([1, 2, 5, 10, 20]) as lag)
), filled as (
  select e.id, e.lag,
    coalesce(
      (select k.below * e.lag / k.lag from known k where k.id = e.id and k.lag <= e.lag
       order by k.lag desc limit 1),
      (select k.below from known k where k.id = e.id and k.lag > e.lag order by k.lag limit 1)
    ) as below,
    coalesce(
      (select k.above * e.lag / k.lag from known k where k.id = e.id and k.lag <= e.lag
       order by k.lag desc limit 1),
      (select k.above from known k where k.id = e.id and k.lag > e.lag order by k.lag limit 1)
    ) as above
  from every e
)
select id, lag, max(below) over (partition by id order by lag) as below,
  max(above) over (partition by id order by lag) as above
from filled;

create table curves as
with around as (
  select e.id, h.h, coalesce(max(e.lag) filter (e.lag <= h.h), 1) as lo,
    coalesce(min(e.lag) filter (e.lag >= h.h), 20) as hi
  from errors e, horizons h group by e.id, h.h
), spread as (
  select a.id, a.h, if(a.lo = a.hi, 0, (a.h - a.lo) / (a.hi - a.lo)) as part,
    greatest(a.h / 20, 1) as beyond,
    ((1 - part) * l.below + part * u.below) * beyond as below,
    ((1 - part) * l.above + part * u.above) * beyond as above
  from around a join errors l on l.id = a.id and l.lag = a.lo
  join errors u on u.id = a.id and u.lag = a.hi
), wide as (
  select s.id, s.h, s.h * 60.0 as hs, p.pace, p.last - p.whole as turn,
    abs(p.last - p.whole) * s.h * 60.0 as steady,
    abs(p.last - p.whole) * s.h * 60.0 * (1 + s.h / 40.0) as turning,
    abs(p.pace) * s.h * 60.0 * 0.4 * least(s.h / 90.0, 1) as doubt,
    if(s.h = 0, 0, greatest(s.below, if(turn < 0, turning, steady), doubt)) as below,
    if(s.h = 0, 0, greatest(s.above, if(turn > 0, turning, steady), doubt)) as above
  from spread s join paces p using (id)
)
select w.id, w.h, least(d.v + w.pace * hs - below, d.v + d.fastest * hs) as lower,
  least(d.v + w.pace * hs, d.v + d.fastest * hs) as middle,
  least(d.v + w.pace * hs + above, d.v + d.fastest * hs) as upper, d.l
from wide w join due d using (id);

create table crossings as
with long as (
  unpivot (select id, h, l, lower, middle, upper from curves) on lower, middle, upper
    into name curve value v
), steps as (
  select *, lag(v) over c as v_before, lag(h) over c as h_before
  from long window c as (partition by id, curve order by h)
), firsts as (
  select *, row_number() over (partition by id, curve order by h) as place
  from steps where v >= l
)
select id, curve, coalesce(60 * (h_before + (l - v_before) / (v - v_before) * (h - h_before)), 0)
  as s
from firsts where place = 1;

create table found as
select d.id, d.topic, d.partition, d.q, d.m, d.v / d.l as use,
  max(s) filter (curve = 'upper') as e, max(s) filter (curve = 'middle') as k,
  max(s) filter (curve = 'lower') as t
from due d left join crossings c using (id) group by all;
"""

_RESULT_SQL = """
with each as (
  select p.*, s.samples as n, s.reached as is_reached, s.b as own,
    f.e, f.k, f.t, k is not null or (f.e <= 3600 and f.use >= 0.5) as is_told,
    (select any_value(to_ns) from points x where x.topic = p.topic
      and x.partition is not distinct from p.partition and x.m = p.source) as made_ns
  from made p
  join made s on s.topic = p.topic and s.partition is not distinct from p.partition
    and s.q = p.q and s.m = p.source
  left join found f on f.topic = p.topic and f.partition is not distinct from p.partition
    and f.q = p.q and f.m = p.source
  where p.in_force
), judged as (
  select *, case when is_reached then if(n >= 10, 'theil_sen', 'broker')
      when n >= 10 then if(is_told, 'theil_sen', 'none')
      when own is null then 'none' else 'broker' end as method,
    case when is_reached then 0 when n >= 10 and is_told then e end as earliest,
    case when is_reached then 0 when n >= 10 and is_told then k when n < 10 then own end as likely,
    case when is_reached then 0 when n >= 10 and is_told then t end as latest
  from each
), counted as (
  select * replace (
    case when is_reached then 0 when earliest is not null
      then greatest(earliest - passed, least(earliest, 0.5)) end as earliest,
    case when is_reached then 0 when likely is not null
      then greatest(likely - passed, least(likely, 0.5)) end as likely,
    case when is_reached then 0 when latest is not null
      then greatest(latest - passed, least(latest, 0.5)) end as latest
  ) from (select *, (to_ns - made_ns) / 1e9 as passed from judged)
), nearest as (
  select *, row_number() over (partition by topic, partition, minute
    order by method = 'none', coalesce(likely, 'inf'), coalesce(earliest, 'inf'), q) as place
  from counted
)
select topic, partition, minute, earliest, likely, latest, if(method = 'none', null, q), method,
  make_timestamptz(made_ns // 1000)
from nearest where place = 1 order by all
"""

COLUMNS = (
    *KEY,
    "seconds_to_breach_earliest",
    "seconds_to_breach",
    "seconds_to_breach_latest",
    "breach_quota",
    "method",
    "forecast_at",
)
"""The columns of ``quota_usage`` that the oracle has, in its order."""


def forecast_oracle(intervals: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of :data:`COLUMNS` with a quota in force, sorted."""
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("intervals", intervals)
        connection.execute("create table horizons as select unnest(?) as h", [HORIZONS_MINUTES])
        connection.execute(_ROWS_SQL)
        connection.execute(_BANDS_SQL)
        return connection.execute(_RESULT_SQL).fetchall()


def forecast_rows_in_order(usage: pa.Table) -> list[tuple[Any, ...]]:
    """The same rows of the table ``quota_usage``."""
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("usage", usage)
        return connection.execute(
            f"select {', '.join(COLUMNS)} from usage where method is not null order by all"
        ).fetchall()
