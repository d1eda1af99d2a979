"""Backlog episodes, found as islands in the sequence of a subscription's minutes.

A minute has a backlog if its verdict is not NONE. Two such minutes belong to one episode if at most
``QUIET_MINUTES_MAX`` others lie between them and no client skipped the backlog. They are an episode
if there are at least ``EPISODE_MINUTES_MIN`` of them, or if one is substantial
(:mod:`headgate.pipeline.tables.episodes`).

The part of an episode in one hour is a *segment*, a row of the table. The ``EDGE_MINUTES`` beyond
an hour's edges show whether an episode continues there. So a segment depends on three hours,
however long the episode is. :func:`joined_table` joins segments into episodes.

The input has all minutes of each subscription in it, sorted by :data:`SORT_COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.flow.account.account import Cell
from headgate.flow.account.verdict import INFERRED, Verdict
from headgate.flow.sentences.episode import Ending
from headgate.pipeline.kernels.account_windows import inferred_rows, longs
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.kernels.column_values import doubles, flags_of_chunks
from headgate.pipeline.kernels.episode_figures import (
    NO_CAUSE,
    EpisodeFigures,
    first_of_largest,
    group_begins,
    last_positive,
)
from headgate.pipeline.tables.arrow_types import (
    arrow_schema,
    changes,
    conform,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY, BLAMES, SHARE_COLUMNS
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.episodes import (
    BLAME_COLUMNS,
    EPISODE_COLUMNS,
    EPISODE_MINUTES_MIN,
    EPISODES,
    QUIET_MINUTES_MAX,
    STUCK_COLUMN,
    SUBSTANTIAL_NS,
)
from headgate.pipeline.tables.intervals import EVICTED_BY, EXPIRED_BY
from headgate.record.fields import STATE_FIELD_NAMES

SORT_COLUMNS: Final = (*ATTRIBUTION_KEY, "minute")
"""Order of the input."""

JUDGED_COLUMNS: Final = (
    *SORT_COLUMNS,
    "from_ns",
    "to_ns",
    "verdict",
    "second",
    "bystander",
    *SHARE_COLUMNS,
    "acked",
    "growth_messages",
    "backlog_messages",
    "oldest_age_max_ns",
    "evicted",
    "evidence",
    "completeness",
    "accounted_ns",
)
"""Columns of ``attribution`` that the kernel needs."""

STUCK_STATE: Final = STATE_FIELD_NAMES[Cell.STUCK]

MINUTE_FIGURES: Final = (
    "skipped", "backlog_messages_start", "expired", STUCK_STATE, *EVICTED_BY, *EXPIRED_BY,
)  # fmt: skip
"""Columns of ``intervals`` of the same minute. The backlog in it counts delayed messages, as what
is skipped does."""

INPUT_COLUMNS: Final = (*JUDGED_COLUMNS, *MINUTE_FIGURES)
"""All columns of the input."""

SEGMENT_ORDER: Final = (*ATTRIBUTION_KEY, "segment_start_ns")
"""Order of the input of :func:`joined_table`."""

_CONSUMER: Final = BLAMES.index(Verdict.CONSUMER.value)


@dataclass(frozen=True, slots=True)
class NewestMinutes:
    """The newest minutes with telemetry, which tell an open episode from one with missing
    telemetry.

    ``minutes``: by cluster and hour, the newest minute (since the epoch) in that hour and the next.
    ``hour``: the newest hour of any cluster.
    """

    minutes: Mapping[tuple[str | None, int], int]
    hour: int

    def is_near(self, cluster: str | None, hour: int, minute: int) -> bool:
        """Whether an episode that ends in this minute is open: the next minute could continue
        it."""
        if self.hour > hour + 1:
            return False
        return self.minutes.get((cluster, hour), minute) - minute <= QUIET_MINUTES_MAX


def episodes_table(table: pa.Table, hours: Collection[int], newest: NewestMinutes) -> pa.Table:
    """The segments of some hours (numbers since the epoch).

    Of the hours before and after them, ``table`` needs only the nearest ``EDGE_MINUTES``.
    """
    schema = table_arrow_schema(EPISODES)
    if table.num_rows == 0:
        return schema.empty_table()
    minutes = _minutes(table)
    segments = _segments(minutes, _islands(minutes), hours)
    if segments is None:
        return schema.empty_table()
    last = table.select(ATTRIBUTION_KEY).take(pa.array(segments.last))
    endings = _endings(minutes, segments, last.column("cluster").to_pylist(), newest)
    hour = minutes.from_ns[segments.first] // HOUR_NS
    start_ns = np.where(segments.before, hour * HOUR_NS, minutes.from_ns[segments.first])
    end_ns = np.where(segments.after, (hour + 1) * HOUR_NS, minutes.to_ns[segments.last])
    figures = _figures(table, minutes, segments, start_ns, end_ns)
    columns: dict[str, Any] = {
        **partition_columns(hour * HOUR_NS),
        **{name: last.column(name) for name in ATTRIBUTION_KEY},
        "segment_start_ns": pa.array(start_ns),
        "segment_end_ns": pa.array(end_ns),
        "continues_after": pa.array(segments.after),
        **figures.columns(endings),
    }
    return conform(columns, schema, len(segments.first))


@dataclass(frozen=True, slots=True)
class _Minutes:
    """What the rows of a table say, by row."""

    subject: Longs
    number: Longs
    """The minute's number since the epoch."""
    from_ns: Longs
    to_ns: Longs
    has_backlog: Flags
    backlog: Longs
    backlog_start: Longs
    is_substantial: Flags
    was_skipped: Flags
    """A client skipped all of the backlog that was there at the minute's start.

    It did so by skipping, clearing or seeking, perhaps after it acknowledged a part. The backlog at
    the minute's end then is another one.
    """

    def group_edges(self) -> tuple[Longs, Longs]:
        """By row: the first and the last row of its subject in its hour."""
        hour, places = self.from_ns // HOUR_NS, np.arange(len(self.number))
        begins = np.ones(len(places), dtype=np.bool_)
        begins[1:] = (self.subject[1:] != self.subject[:-1]) | (hour[1:] != hour[:-1])
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(places)) - 1
        group = np.cumsum(begins) - 1
        return first[group], last[group]


def _minutes(table: pa.Table) -> _Minutes:
    from_ns, to_ns = longs(table, "from_ns"), longs(table, "to_ns")
    backlog, acked = longs(table, "backlog_messages"), longs(table, "acked")
    skipped = longs(table, "skipped")
    start = backlog - longs(table, "growth_messages")
    # As doubles, because the product of a large backlog and a minute exceeds 64 bits.
    work_ns = backlog.astype(np.float64) * (to_ns - from_ns)
    slow = work_ns > acked.astype(np.float64) * SUBSTANTIAL_NS
    old = longs(table, "oldest_age_max_ns") >= SUBSTANTIAL_NS
    return _Minutes(
        subject=np.cumsum(changes(table, ATTRIBUTION_KEY)),
        number=from_ns // MINUTE_NS,
        from_ns=from_ns,
        to_ns=to_ns,
        has_backlog=~_equals(table, "verdict", Verdict.NONE.value),
        backlog=backlog,
        backlog_start=start,
        is_substantial=(longs(table, "evicted") + longs(table, "expired") != 0) | old | slow,
        was_skipped=(skipped > 0) & (skipped + acked >= longs(table, "backlog_messages_start")),
    )


def _equals(table: pa.Table, name: str, text: str) -> Flags:
    return flags_of_chunks(pc.equal(table.column(name), text))


@dataclass(frozen=True, slots=True)
class _Islands:
    """Groups of minutes with a backlog that form one episode each.

    Island i has the minutes from ``begins[i]`` to ``begins[i + 1]`` of ``rows``.
    """

    rows: Longs
    begins: Longs
    is_episode: Flags
    """Whether it is long or substantial enough to report."""
    is_skipped: Flags
    """Whether skipping the backlog ended it."""


def _islands(minutes: _Minutes) -> _Islands:
    rows = np.flatnonzero(minutes.has_backlog)
    if len(rows) == 0:
        none = np.zeros(0, dtype=np.bool_)
        return _Islands(rows, rows, none, none)
    before, now = rows[:-1], rows[1:]
    skips = np.cumsum(minutes.was_skipped)
    skipped = skips[now - 1] > skips[before] - minutes.was_skipped[before]
    pause = minutes.number[now] - minutes.number[before] - 1
    parted = (minutes.subject[now] != minutes.subject[before]) | (pause > QUIET_MINUTES_MAX)
    begins = group_begins(skipped | parted)
    sizes = np.diff(np.append(begins, len(rows)))
    substantial = np.logical_or.reduceat(minutes.is_substantial[rows], begins)
    return _Islands(
        rows,
        begins,
        (sizes >= EPISODE_MINUTES_MIN) | substantial,
        _ended_by_skip(minutes, rows[begins], rows[begins + sizes - 1]),
    )


def _ended_by_skip(minutes: _Minutes, first: Longs, last: Longs) -> Flags:
    """Whether a client skipped the backlog of each island in its last minute or soon after."""
    count = len(minutes.number)
    places = np.where(minutes.was_skipped, np.arange(count), count)
    following = np.minimum.accumulate(places[::-1])[::-1][last]
    # After the first minute of the next island it is the backlog of that one.
    there = following < np.append(first[1:], count)
    place = np.where(there, following, last)
    pause = minutes.number[place] - minutes.number[last] - 1
    is_same = minutes.subject[place] == minutes.subject[last]
    return np.asarray(there & is_same & (pause < QUIET_MINUTES_MAX))


@dataclass(frozen=True, slots=True)
class _Segments:
    """The parts of episodes in single hours; places of rows, by segment."""

    first: Longs
    """First minute with a backlog."""
    last: Longs
    count: Longs
    """Minutes with a backlog."""
    before: Flags
    """Whether the episode has minutes in earlier hours."""
    after: Flags
    is_skipped: Flags
    members: Longs
    """All minutes, segment after segment, with bridged pauses, also those at the hour's edges."""
    begins: Longs
    """Place of the first of each segment in ``members``."""


def _segments(minutes: _Minutes, islands: _Islands, hours: Collection[int]) -> _Segments | None:
    """The segments in some hours; None without any."""
    sizes = np.diff(np.append(islands.begins, len(islands.rows)))
    island = np.repeat(np.arange(len(sizes)), sizes)
    hour = minutes.from_ns[islands.rows] // HOUR_NS
    wanted = np.isin(hour, np.fromiter(hours, np.int64, len(hours)))
    places = np.flatnonzero(islands.is_episode[island] & wanted)
    if len(places) == 0:
        return None
    of, at = island[places], hour[places]
    begins = group_begins((of[1:] != of[:-1]) | (at[1:] != at[:-1]))
    count = np.diff(np.append(begins, len(places)))
    first_place, last_place, of = places[begins], places[begins + count - 1], of[begins]
    first, last = islands.rows[first_place], islands.rows[last_place]
    before = first_place != islands.begins[of]
    after = last_place != islands.begins[of] + sizes[of] - 1
    hour_first, hour_last = minutes.group_edges()
    low = np.where(before, hour_first[first], first)
    high = np.where(after, hour_last[last], last)
    lengths = high - low + 1
    starts = np.cumsum(lengths) - lengths
    inside = np.arange(lengths.sum()) - np.repeat(starts, lengths)
    members = np.repeat(low, lengths) + inside
    return _Segments(first, last, count, before, after, islands.is_skipped[of], members, starts)


def _endings(
    minutes: _Minutes, segments: _Segments, clusters: list[str | None], newest: NewestMinutes
) -> list[Ending]:
    following = np.minimum(segments.last + 1, len(minutes.number) - 1)
    number = minutes.number[segments.last]
    is_seen = (
        (following > segments.last)
        & (minutes.subject[following] == minutes.subject[segments.last])
        & (minutes.number[following] <= number + QUIET_MINUTES_MAX + 1)
    )
    hour = minutes.from_ns[segments.last] // HOUR_NS
    facts = (segments.after, segments.is_skipped, is_seen, hour, number)
    found = []
    for cluster, after, is_skipped, seen, at, last in zip(
        clusters, *(each.tolist() for each in facts), strict=True
    ):
        if after:
            found.append(Ending.CONTINUES)
        elif is_skipped:
            found.append(Ending.SKIPPED)
        elif newest.is_near(cluster, at, last):
            found.append(Ending.OPEN)
        else:
            found.append(Ending.OVER if seen else Ending.UNSEEN)
    return found


def _figures(
    table: pa.Table, minutes: _Minutes, segments: _Segments, start_ns: Longs, end_ns: Longs
) -> EpisodeFigures:
    members, begins = segments.members, segments.begins
    last = np.append(begins[1:], len(members)) - 1
    peak = members[first_of_largest(minutes.backlog[members], begins)]
    length_ns = minutes.to_ns[members] - minutes.from_ns[members]
    covered_ns = doubles(table, "completeness")[members] * length_ns
    growth = minutes.backlog[members[last]] - minutes.backlog_start[members[begins]]
    oldest = longs(table, "oldest_age_max_ns")[members]
    evicted, expired = longs(table, "evicted")[members], longs(table, "expired")[members]
    inside = table.select((*EVICTED_BY, *EXPIRED_BY)).take(pa.array(members))
    return EpisodeFigures(
        start_ns=start_ns,
        end_ns=end_ns,
        before=segments.before,
        minutes=segments.count,
        peak=minutes.backlog[peak],
        peak_minute=table.column("minute").take(pa.array(peak)),
        growth=growth,
        oldest_age_ns_max=np.maximum.reduceat(oldest, begins),
        blame_ns=np.add.reduceat(_blame_ns(table, members, covered_ns), begins, axis=1),
        stuck_ns=np.add.reduceat(longs(table, STUCK_STATE)[members], begins),
        covered_ns=np.add.reduceat(covered_ns, begins),
        evicted=np.add.reduceat(evicted, begins),
        evicted_by=inside.select(EVICTED_BY).take(last_positive(evicted, begins)),
        expired=np.add.reduceat(expired, begins),
        expired_by=inside.select(EXPIRED_BY).take(last_positive(expired, begins)),
        is_inferred=np.logical_or.reduceat(inferred_rows(table)[members], begins),
    )


def _blame_ns(table: pa.Table, members: Longs, covered_ns: Doubles) -> Longs:
    """The blame of some minutes in nanoseconds, [BLAMES, n].

    Each minute counts by its verdict. In a pause no cause is to blame: messages that a healthy
    consumer works on are no backlog. The share of a bystander limiter counts for the consumer.
    """
    some = table.select(("verdict", "second", "bystander", "accounted_ns", *SHARE_COLUMNS)).take(
        pa.array(members)
    )
    # Rows of earlier versions have no accounted_ns; their sampled time counts instead.
    accounted_ns = longs(some, "accounted_ns")
    weight = np.where(accounted_ns != 0, accounted_ns, np.rint(covered_ns).astype(np.int64))
    shares = np.nan_to_num(np.stack([doubles(some, name) for name in SHARE_COLUMNS]))
    blame_ns = np.rint(shares * weight).astype(np.int64)
    stands_by = flags_of_chunks(some.column("bystander"))
    for place, name in enumerate(BLAMES):
        moved = np.where(stands_by & _equals(some, "second", name), blame_ns[place], 0)
        blame_ns[place] -= moved
        blame_ns[_CONSUMER] += moved
    is_quiet = _equals(some, "verdict", Verdict.NONE.value)
    blame_ns[:, is_quiet] = 0
    blame_ns[NO_CAUSE, is_quiet] = weight[is_quiet]
    return blame_ns


def joined_table(table: pa.Table) -> pa.Table:
    """Whole episodes from segments, which are sorted by :data:`SEGMENT_ORDER`."""
    schema = arrow_schema(EPISODE_COLUMNS)
    if table.num_rows == 0:
        return schema.empty_table()
    start_ns, end_ns = longs(table, "segment_start_ns"), longs(table, "segment_end_ns")
    before = flags_of_chunks(table.column("continues_before"))
    after = flags_of_chunks(table.column("continues_after"))
    # Those that meet at an hour's edge are one episode.
    meets = (end_ns[:-1] == start_ns[1:]) & after[:-1] & before[1:]
    begins = group_begins(changes(table, ATTRIBUTION_KEY)[1:] | ~meets)
    ends = np.append(begins[1:], table.num_rows) - 1
    backlog = longs(table, "peak_backlog_messages")
    peak = first_of_largest(backlog, begins)
    covered_ns = doubles(table, "completeness") * (end_ns - start_ns)
    inferred = _equals(table, "evidence", INFERRED)
    evicted, expired = longs(table, "evicted"), longs(table, "expired")
    blame_ns = np.stack([longs(table, name) for name in BLAME_COLUMNS])
    figures = EpisodeFigures(
        start_ns=start_ns[begins],
        end_ns=end_ns[ends],
        before=before[begins],
        minutes=np.add.reduceat(longs(table, "minutes"), begins),
        peak=backlog[peak],
        peak_minute=table.column("peak_minute").take(pa.array(peak)),
        growth=np.add.reduceat(longs(table, "growth_messages"), begins),
        oldest_age_ns_max=np.maximum.reduceat(longs(table, "oldest_age_max_ns"), begins),
        blame_ns=np.add.reduceat(blame_ns, begins, axis=1),
        stuck_ns=np.add.reduceat(longs(table, STUCK_COLUMN), begins),
        covered_ns=np.add.reduceat(covered_ns, begins),
        evicted=np.add.reduceat(evicted, begins),
        evicted_by=table.select(EVICTED_BY).take(last_positive(evicted, begins)),
        expired=np.add.reduceat(expired, begins),
        expired_by=table.select(EXPIRED_BY).take(last_positive(expired, begins)),
        is_inferred=np.logical_or.reduceat(inferred, begins),
    )
    last = table.select((*ATTRIBUTION_KEY, "ending", "is_open")).take(pa.array(ends))
    is_open = flags_of_chunks(last.column("is_open"))
    columns: dict[str, Any] = {
        **{name: last.column(name) for name in ATTRIBUTION_KEY},
        "episode_start_ns": pa.array(figures.start_ns),
        "episode_end_ns": pa.array(figures.end_ns, mask=is_open),
        "continues_after": pa.array(after[ends]),
        **figures.columns([Ending(text) for text in last.column("ending").to_pylist()]),
        "is_open": pa.array(is_open),
    }
    return conform(columns, schema, len(begins))
