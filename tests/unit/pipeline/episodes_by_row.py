"""Backlog episodes minute by minute: what the kernel over arrays must equal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Final

import pyarrow as pa

from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.flow.account.verdict import INFERRED, MEASURED, Verdict
from headgate.flow.sentences.episode import Ending, EpisodeFacts, episode_sentence
from headgate.pipeline.kernels.episodes import NewestMinutes
from headgate.pipeline.kernels.sentences import evicted_by_text, expired_by_text
from headgate.pipeline.tables.arrow_types import arrow_schema, table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY, BLAMES, SHARE_COLUMNS
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS, hour_partition
from headgate.pipeline.tables.episodes import (
    BLAME_COLUMNS,
    EPISODE_COLUMNS,
    EPISODE_MINUTES_MIN,
    EPISODES,
    QUIET_MINUTES_MAX,
    SUBSTANTIAL_NS,
)
from headgate.pipeline.tables.intervals import EVICTED_BY, EXPIRED_BY
from headgate.pipeline.time_span import minute_text, since_epoch_us

_NO_CAUSE: Final = BLAME_COLUMNS[BLAMES.index(Verdict.NONE.value)]

SECOND_SHARE_MIN: Final = 0.05
"""Least share of all blame with which a second cause is named."""

Minute = Mapping[str, Any]
"""One subscription's minute, with :data:`INPUT_COLUMNS`."""

Blame = dict[str, int]
"""Nanoseconds by cause."""


def episodes_by_row(table: pa.Table, hours: Collection[int], newest: NewestMinutes) -> pa.Table:
    """The segments of some hours (numbers since the epoch).

    Of the hours before and after them, ``table`` needs only the nearest ``EDGE_MINUTES``.
    """
    found: list[dict[str, Any]] = []
    for key, group in groupby(
        table.to_pylist(), lambda row: tuple(row[n] for n in ATTRIBUTION_KEY)
    ):
        minutes = list(group)
        islands = [island for island in _islands(minutes) if island.is_episode]
        known = {_number(minute) for minute in minutes}
        by_hour: dict[int, list[Minute]] = {}
        for minute in minutes:
            by_hour.setdefault(_hour(minute), []).append(minute)
        for hour in sorted(by_hour.keys() & set(hours)):
            for island in islands:
                segment = _segment(island, hour, by_hour[hour], known, newest)
                if segment is not None:
                    names = dict(zip(ATTRIBUTION_KEY, key, strict=True))
                    found.append({**hour_partition(hour), **names, **segment})
    return pa.Table.from_pylist(found, schema=table_arrow_schema(EPISODES))


def _number(minute: Minute) -> int:
    """The minute's number since the epoch."""
    return int(minute["from_ns"]) // MINUTE_NS


def _hour(minute: Minute) -> int:
    return int(minute["from_ns"]) // HOUR_NS


@dataclass(slots=True)
class _Island:
    """The minutes with a backlog that form one episode."""

    minutes: list[Minute]
    skipped_in: int | None = None
    """The first minute in which a client skipped the backlog, not before the last of
    ``minutes``."""

    def takes(self, minute: Minute) -> bool:
        """Whether a later minute with a backlog belongs to the same episode."""
        return self.skipped_in is None and self._pause(_number(minute)) <= QUIET_MINUTES_MAX

    @property
    def is_episode(self) -> bool:
        """Whether it is long or substantial enough to report."""
        return len(self.minutes) >= EPISODE_MINUTES_MIN or any(map(_is_substantial, self.minutes))

    @property
    def is_skipped(self) -> bool:
        """Whether skipping the backlog ended it."""
        return self.skipped_in is not None and self._pause(self.skipped_in) < QUIET_MINUTES_MAX

    def _pause(self, number: int) -> int:
        return number - _number(self.minutes[-1]) - 1


def _islands(minutes: Sequence[Minute]) -> list[_Island]:
    islands: list[_Island] = []
    for minute in minutes:
        if minute["verdict"] != Verdict.NONE.value:
            if islands and islands[-1].takes(minute):
                islands[-1].minutes.append(minute)
            else:
                islands.append(_Island([minute]))
        if islands and islands[-1].skipped_in is None and _was_skipped(minute):
            islands[-1].skipped_in = _number(minute)
    return islands


def _is_substantial(minute: Minute) -> bool:
    if (
        minute["evicted"]
        or minute["expired"]
        or (minute["oldest_age_max_ns"] or 0) >= SUBSTANTIAL_NS
    ):
        return True
    length_ns = minute["to_ns"] - minute["from_ns"]
    return bool(minute["backlog_messages"] * length_ns > minute["acked"] * SUBSTANTIAL_NS)


def _was_skipped(minute: Minute) -> bool:
    """Whether a client skipped all of the backlog that was there at the minute's start.

    It did so by skipping, clearing or seeking, perhaps after it acknowledged a part. The backlog at
    the minute's end then is another one.
    """
    skipped = minute["skipped"] or 0
    # What is skipped counts delayed messages, too.
    start = minute["backlog_messages_start"] or 0
    return skipped > 0 and skipped + minute["acked"] >= start


def _backlog_start(minute: Minute) -> int:
    return int(minute["backlog_messages"] - minute["growth_messages"])


def _segment(
    island: _Island,
    hour: int,
    minutes_of_hour: Sequence[Minute],
    known: Collection[int],
    newest: NewestMinutes,
) -> dict[str, Any] | None:
    """The segment of an episode in an hour; None if no minute of it lies there."""
    inside = [minute for minute in island.minutes if _hour(minute) == hour]
    if not inside:
        return None
    before = inside[0] is not island.minutes[0]
    after = inside[-1] is not island.minutes[-1]
    start_ns = hour * HOUR_NS if before else inside[0]["from_ns"]
    end_ns = (hour + 1) * HOUR_NS if after else inside[-1]["to_ns"]
    # The segment includes bridged pauses, also those at the hour's edges.
    minutes = [m for m in minutes_of_hour if m["from_ns"] < end_ns and m["to_ns"] > start_ns]
    last = _number(inside[-1])
    following = range(last + 1, last + QUIET_MINUTES_MAX + 2)
    if after:
        ending = Ending.CONTINUES
    elif island.is_skipped:
        ending = Ending.SKIPPED
    elif newest.is_near(inside[-1]["cluster"], hour, last):
        ending = Ending.OPEN
    else:
        ending = Ending.OVER if any(m in known for m in following) else Ending.UNSEEN
    peak = max(minutes, key=lambda minute: minute["backlog_messages"])
    covered_ns = sum(m["completeness"] * (m["to_ns"] - m["from_ns"]) for m in minutes)
    figures = {
        "segment_start_ns": start_ns,
        "segment_end_ns": end_ns,
        "continues_before": before,
        "continues_after": after,
        "is_open": ending is Ending.OPEN,
        "minutes": len(inside),
        "peak_backlog_messages": peak["backlog_messages"],
        "peak_minute": peak["minute"],
        "growth_messages": minutes[-1]["backlog_messages"] - _backlog_start(minutes[0]),
        "oldest_age_max_ns": max(minute["oldest_age_max_ns"] or 0 for minute in minutes),
        **_blame_columns(minutes),
        "stuck_ns": sum(minute["state_stuck_ns"] or 0 for minute in minutes),
        **_lost_columns(minutes),
        "completeness": min(1.0, covered_ns / (end_ns - start_ns)),
        "evidence": _evidence(minutes),
    }
    return _judged(figures, start_ns, end_ns, ending)


def _blame_columns(minutes: Sequence[Minute]) -> Blame:
    """The blame of the minutes, summed, in nanoseconds by column.

    Each minute counts by its verdict. In a pause no cause is to blame: messages that a healthy
    consumer works on are no backlog. The share of a bystander limiter counts for the consumer.
    """
    total = dict.fromkeys(BLAME_COLUMNS, 0)
    for minute in minutes:
        # Rows of earlier versions have no accounted_ns; their sampled time counts instead.
        span_ns = minute["to_ns"] - minute["from_ns"]
        weight = minute["accounted_ns"] or round(minute["completeness"] * span_ns)
        if minute["verdict"] == Verdict.NONE.value:
            total[_NO_CAUSE] += weight
            continue
        blame = {
            name: round(minute[share] * weight)
            for name, share in zip(BLAME_COLUMNS, SHARE_COLUMNS, strict=True)
        }
        if minute["bystander"]:
            limiter = f"blame_{minute['second'].lower()}_ns"
            blame["blame_consumer_ns"] += blame.pop(limiter)
        for name, ns in blame.items():
            total[name] += ns
    return total


def _lost_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Lost messages, and what took them in the last row in which some were."""
    found: dict[str, Any] = {}
    for lost, causes in (("evicted", EVICTED_BY), ("expired", EXPIRED_BY)):
        there = [row for row in rows if row[lost]]
        found[lost] = sum(row[lost] for row in there)
        found |= {name: there[-1][name] if there else None for name in causes}
    return found


def _evidence(rows: Sequence[Mapping[str, Any]]) -> str:
    return INFERRED if any(row["evidence"] == INFERRED for row in rows) else MEASURED


def _judged(figures: dict[str, Any], start_ns: int, end_ns: int, ending: Ending) -> dict[str, Any]:
    """The row, completed by what follows from its sums: causes and sentence."""
    blame = {Verdict(b): figures[name] for b, name in zip(BLAMES, BLAME_COLUMNS, strict=True)}
    total_ns = sum(blame.values())
    blamed_ns = total_ns - blame.pop(Verdict.NONE)
    order = sorted((cause for cause in blame if blame[cause] > 0), key=lambda c: -blame[c])
    cause, second = (*order, None, None)[:2]
    if second is not None and blame[second] < SECOND_SHARE_MIN * blamed_ns:
        second = None
    facts = EpisodeFacts(
        since=minute_text(start_ns),
        until=minute_text(end_ns),
        seconds=(end_ns - start_ns) / NS_PER_S,
        ending=ending,
        peak_messages=figures["peak_backlog_messages"],
        peak_at=minute_text(since_epoch_us(figures["peak_minute"]) * NS_PER_US),
        begins_before=figures["continues_before"],
        cause=cause,
        share=0.0 if cause is None else blame[cause] / total_ns,
        second=second,
        second_share=0.0 if second is None else blame[second] / total_ns,
        is_stuck=figures["stuck_ns"] > 0.5 * figures["blame_broker_ns"],
        evicted=figures["evicted"],
        evicted_by=evicted_by_text(figures),
        expired=figures["expired"],
        expired_by=expired_by_text(figures),
    )
    return {
        **figures,
        "ending": ending.value,
        "cause": None if cause is None else cause.value,
        "second_cause": None if second is None else second.value,
        "sentence": episode_sentence(facts),
    }


def joined_by_row(table: pa.Table) -> pa.Table:
    """Whole episodes from segments, which are sorted by :data:`SEGMENT_ORDER`."""
    found: list[dict[str, Any]] = []
    for key, group in groupby(
        table.to_pylist(), lambda row: tuple(row[n] for n in ATTRIBUTION_KEY)
    ):
        for segments in _adjacent(list(group)):
            found.append({**dict(zip(ATTRIBUTION_KEY, key, strict=True)), **_joined(segments)})
    return pa.Table.from_pylist(found, schema=arrow_schema(EPISODE_COLUMNS))


def _adjacent(segments: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The segments of each episode: those that meet at an hour's edge."""
    episode = [segments[0]]
    for before, segment in pairwise(segments):
        meets = before["segment_end_ns"] == segment["segment_start_ns"]
        if not (meets and before["continues_after"] and segment["continues_before"]):
            yield episode
            episode = []
        episode.append(segment)
    yield episode


def _joined(segments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first, last = segments[0], segments[-1]
    start_ns, end_ns = first["segment_start_ns"], last["segment_end_ns"]
    peak = max(segments, key=lambda segment: segment["peak_backlog_messages"])
    summed = ("minutes", "growth_messages", *BLAME_COLUMNS, "stuck_ns")
    covered_ns = sum(
        s["completeness"] * (s["segment_end_ns"] - s["segment_start_ns"]) for s in segments
    )
    figures = {
        "episode_start_ns": start_ns,
        "episode_end_ns": None if last["is_open"] else end_ns,
        "continues_before": first["continues_before"],
        "continues_after": last["continues_after"],
        "is_open": last["is_open"],
        **{name: sum(segment[name] for segment in segments) for name in summed},
        **_lost_columns(segments),
        "peak_backlog_messages": peak["peak_backlog_messages"],
        "peak_minute": peak["peak_minute"],
        "oldest_age_max_ns": max(segment["oldest_age_max_ns"] for segment in segments),
        "completeness": min(1.0, covered_ns / (end_ns - start_ns)),
        "evidence": _evidence(segments),
    }
    return _judged(figures, start_ns, end_ns, Ending(last["ending"]))
