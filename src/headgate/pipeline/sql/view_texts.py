"""The text of each view over the tables' views, in SQL that Spark and DuckDB share.

``{timestamp:x}`` and the like stand for what differs (:mod:`headgate.pipeline.sql.dialect`). The
kernels compute the same rows for ``headgate pipeline show``, which has no engine; a test compares.
``backlog_episodes`` has no sentence here: Python words it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headgate.pipeline.kernels.blame import LIMITERS
from headgate.pipeline.kernels.episode_figures import SECOND_SHARE_MIN
from headgate.pipeline.kernels.rollup import AMOUNTS, ROLLUP_COLUMNS
from headgate.pipeline.sql.columns import with_companions
from headgate.pipeline.sql.dialect import Dialect
from headgate.pipeline.tables.attribution import ATTRIBUTION, ATTRIBUTION_KEY, BLAMES
from headgate.pipeline.tables.episodes import (
    BLAME_COLUMNS,
    EPISODE_COLUMNS,
    EPISODES,
    STUCK_COLUMN,
)
from headgate.pipeline.tables.intervals import EVICTED_BY, EXPIRED_BY, INTERVALS
from headgate.record.fields import PARK_CAUSES

_TIMESTAMP: Final = re.compile(r"\{timestamp:(\w+)\}")


@dataclass(frozen=True, slots=True)
class View:
    """A view over other views."""

    name: str
    follows_from: tuple[str, ...]
    """Tables whose views the text reads."""
    columns: tuple[str, ...]
    """Its columns, as the text has them."""
    text: str

    def sql(self, dialect: Dialect) -> str:
        """The query in an engine's SQL."""
        return _TIMESTAMP.sub(lambda found: dialect.timestamp(found[1]), self.text).strip()


_KEY: Final = ", ".join(ATTRIBUTION_KEY)
_CAUSES: Final = tuple(
    (blame, name) for blame, name in zip(BLAMES, BLAME_COLUMNS, strict=True) if blame != "NONE"
)


def _largest(but: str = "") -> str:
    """The largest blame of an episode, or of all causes but the one in a column."""
    parts = [
        f"CASE WHEN {but} = '{blame}' THEN 0 ELSE {name} END" if but else name
        for blame, name in _CAUSES
    ]
    return f"greatest({', '.join(parts)})"


def _cause(most: str, but: str = "") -> str:
    """The cause with the largest blame; null if there is none. Of equal ones, the first."""
    cases = " ".join(
        f"WHEN {name} = {most}" + (f" AND {but} <> '{blame}'" if but else "") + f" THEN '{blame}'"
        for blame, name in _CAUSES
    )
    return f"CASE WHEN {most} = 0 THEN NULL {cases} END"


_LOST: Final = {"evicted": EVICTED_BY, "expired": EXPIRED_BY}
"""Columns with lost messages, and what took them last."""
_SUMMED: Final = ("minutes", "growth_messages", *BLAME_COLUMNS, STUCK_COLUMN, *_LOST)
_BLAMED: Final = " + ".join(name for _, name in _CAUSES)


def _from_last(lost: str) -> str:
    """Segments of an episode, from the last one in which messages were lost."""
    last = f"CASE WHEN {lost} > 0 THEN 0 ELSE 1 END, segment_start_ns DESC"
    return f"row_number() OVER (PARTITION BY {_KEY}, number ORDER BY {last}) AS from_{lost}"


def _of_last(lost: str, name: str) -> str:
    """A column of that segment; null if no message was lost."""
    return f"max(CASE WHEN from_{lost} = 1 AND {lost} > 0 THEN {name} END) AS {name}"


BACKLOG_EPISODES: Final = View(
    "backlog_episodes",
    (EPISODES.name,),
    with_companions(column.name for column in EPISODE_COLUMNS if column.name != "sentence"),
    f"""
WITH segments AS (
  SELECT *,
    CASE WHEN continues_before AND lag(continues_after) OVER history
        AND segment_start_ns = lag(segment_end_ns) OVER history THEN 0 ELSE 1 END AS begins
  FROM {EPISODES.name}
  WINDOW history AS (PARTITION BY {_KEY} ORDER BY segment_start_ns)
), numbered AS (
  SELECT *, sum(begins) OVER (PARTITION BY {_KEY} ORDER BY segment_start_ns) AS number
  FROM segments
), ranked AS (
  SELECT *,
    row_number() OVER (PARTITION BY {_KEY}, number ORDER BY segment_start_ns) AS from_first,
    row_number() OVER (PARTITION BY {_KEY}, number ORDER BY segment_start_ns DESC) AS from_last,
    row_number() OVER (PARTITION BY {_KEY}, number
      ORDER BY peak_backlog_messages DESC, segment_start_ns) AS from_peak,
    {", ".join(_from_last(lost) for lost in _LOST)}
  FROM numbered
), joined AS (
  SELECT {_KEY},
    min(segment_start_ns) AS episode_start_ns,
    CASE WHEN bool_or(from_last = 1 AND is_open) THEN NULL
      ELSE max(segment_end_ns) END AS episode_end_ns,
    max(segment_end_ns) AS last_ns,
    bool_or(from_first = 1 AND continues_before) AS continues_before,
    bool_or(from_last = 1 AND continues_after) AS continues_after,
    bool_or(from_last = 1 AND is_open) AS is_open,
    max(CASE WHEN from_last = 1 THEN ending END) AS ending,
    max(peak_backlog_messages) AS peak_backlog_messages,
    max(CASE WHEN from_peak = 1 THEN peak_minute END) AS peak_minute,
    max(oldest_age_max_ns) AS oldest_age_max_ns,
    {", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in _SUMMED)},
    {", ".join(_of_last(lost, name) for lost, names in _LOST.items() for name in names)},
    sum(completeness * (segment_end_ns - segment_start_ns)) AS covered_ns,
    CASE WHEN bool_or(evidence = 'inferred') THEN 'inferred' ELSE 'measured' END AS evidence
  FROM ranked
  GROUP BY {_KEY}, number
), caused AS (
  SELECT *, {_cause(_largest())} AS cause FROM joined
), seconded AS (
  SELECT *, {_largest("cause")} AS second_ns FROM caused
)
SELECT {_KEY},
  episode_start_ns, {{timestamp:episode_start_ns}} AS episode_start_time,
  episode_end_ns, {{timestamp:episode_end_ns}} AS episode_end_time,
  continues_before, continues_after, is_open, ending, minutes, peak_backlog_messages, peak_minute,
  growth_messages, oldest_age_max_ns, oldest_age_max_ns / 1e9 AS oldest_age_max_s,
  {", ".join(f"{n}, {n} / 1e9 AS {n.removesuffix('_ns')}_s" for n in BLAME_COLUMNS)},
  coalesce({STUCK_COLUMN}, 0) AS {STUCK_COLUMN}, coalesce({STUCK_COLUMN}, 0) / 1e9 AS stuck_s,
  cause,
  CASE WHEN second_ns > 0 AND second_ns >= {SECOND_SHARE_MIN:e} * ({_BLAMED})
    THEN {_cause("second_ns", "cause")} END AS second_cause,
  coalesce(evicted, 0) AS evicted, {", ".join(EVICTED_BY)},
  coalesce(expired, 0) AS expired, expired_by_ttl_ns, expired_by_ttl_ns / 1e9 AS expired_by_ttl_s,
  expired_by_source,
  least(1e0, covered_ns / (last_ns - episode_start_ns)) AS completeness,
  evidence
FROM seconded
""",
)
"""Whole episodes, from the hours of ``episodes``."""

_EVICTED: Final = ("messages", "bytes")
_ROLLUP_KEY: Final = "cluster, namespace, minute"
_NAMESPACE: Final = "regexp_extract(topic, '^[^:]+://([^/]+/[^/]+)/', 1) AS namespace"


def _evicted(unit: str) -> str:
    """What quotas of both types evicted."""
    return f"coalesce(eviction_size_{unit}, 0) + coalesce(eviction_time_{unit}, 0)"


def _blamed(blame: str) -> str:
    """The share of a cause in a row of ``attribution``, corrected by its verdict."""
    share = f"share_{blame.lower()}"
    if blame == "CONSUMER":
        stood_by = " ".join(f"WHEN '{each}' THEN share_{each.lower()}" for each in LIMITERS)
        share += f" + CASE WHEN bystander THEN CASE second {stood_by} ELSE 0 END ELSE 0 END"
    elif blame in LIMITERS:
        share = f"CASE WHEN bystander AND second = '{blame}' THEN 0 ELSE {share} END"
    of_none = 1 if blame == "NONE" else 0
    return f"CASE WHEN verdict = 'NONE' THEN {of_none} ELSE {share} END"


NAMESPACE_ROLLUP: Final = View(
    "namespace_rollup",
    (INTERVALS.name, ATTRIBUTION.name),
    with_companions(column.name for column in ROLLUP_COLUMNS),
    f"""
WITH topics AS (
  SELECT cluster, minute, {_NAMESPACE}, oldest_age_max_ns,
    {", ".join(AMOUNTS)},
    {", ".join(f"parked_{cause}_ns" for cause in PARK_CAUSES)},
    {", ".join(f"{_evicted(unit)} AS evicted_{unit}" for unit in _EVICTED)}
  FROM {INTERVALS.name} WHERE kind = 'topic'
), topic_sums AS (
  SELECT {_ROLLUP_KEY}, count(*) AS topics, max(oldest_age_max_ns) AS oldest_age_max_ns,
    {", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in AMOUNTS)},
    {", ".join(f"CAST(sum(evicted_{u}) AS BIGINT) AS evicted_{u}" for u in _EVICTED)},
    {", ".join(f"sum(parked_{cause}_ns) / 1e9 AS parked_{cause}_s" for cause in PARK_CAUSES)}
  FROM topics GROUP BY {_ROLLUP_KEY}
), subscription_sums AS (
  SELECT cluster, {_NAMESPACE}, minute, count(*) AS subscriptions,
    CAST(sum(greatest(coalesce(backlog_messages, 0) - coalesce(delayed, 0), 0)) AS BIGINT)
      AS backlog_messages
  FROM {INTERVALS.name} WHERE kind = 'subscription' GROUP BY ALL
), judged AS (
  SELECT cluster, {_NAMESPACE}, minute,
    coalesce(CAST(accounted_ns AS DOUBLE), completeness * (to_ns - from_ns)) / 1e9 AS seconds,
    {", ".join(f"{_blamed(blame)} AS {blame.lower()}" for blame in BLAMES)}
  FROM {ATTRIBUTION.name}
), judged_sums AS (
  SELECT {_ROLLUP_KEY},
    {", ".join(f"sum({b.lower()} * seconds) AS blame_{b.lower()}_s" for b in BLAMES)}
  FROM judged GROUP BY {_ROLLUP_KEY}
)
SELECT t.cluster, t.namespace, t.minute, t.topics,
  {", ".join(f"coalesce(t.{name}, 0) AS {name}" for name in AMOUNTS)},
  t.oldest_age_max_ns, t.oldest_age_max_ns / 1e9 AS oldest_age_max_s,
  {", ".join(f"coalesce(t.evicted_{unit}, 0) AS evicted_{unit}" for unit in _EVICTED)},
  {", ".join(f"coalesce(t.parked_{c}_s, 0e0) AS parked_{c}_s" for c in PARK_CAUSES)},
  coalesce(s.subscriptions, 0) AS subscriptions,
  coalesce(s.backlog_messages, 0) AS backlog_messages,
  {", ".join(f"j.blame_{blame.lower()}_s" for blame in BLAMES)},
  {" + ".join(f"coalesce(j.blame_{each.lower()}_s, 0e0)" for each in LIMITERS)} AS throttled_s,
  {" + ".join(f"coalesce(t.parked_{cause}_s, 0e0)" for cause in PARK_CAUSES)} AS parked_s
FROM topic_sums t
LEFT JOIN subscription_sums s ON s.cluster IS NOT DISTINCT FROM t.cluster
  AND s.namespace = t.namespace AND s.minute = t.minute
LEFT JOIN judged_sums j ON j.cluster IS NOT DISTINCT FROM t.cluster
  AND j.namespace = t.namespace AND j.minute = t.minute
""",
)
"""What happened in each namespace and minute, from ``intervals`` and ``attribution``."""

SQL_VIEWS: Final = {view.name: view for view in (BACKLOG_EPISODES, NAMESPACE_ROLLUP)}
