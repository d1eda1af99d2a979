"""Sentences about what parked topics' SENDs, with the limit or quota behind each cause.

The limit that a minute's record has is the one at its end. Where it changed within the minute, the
lower one of both ends throttled: the other let more through. Over a range, a cause is named with
the limit that parked for longest.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
import pyarrow as pa

from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_S
from headgate.flow.limits.rate_limit import Dimension
from headgate.flow.sentences.backlog import limit_text
from headgate.flow.sentences.past_publish import PastParkSummary, past_publish_sentence
from headgate.flow.sentences.publish import PUBLISH_LIMITS
from headgate.pipeline.kernels.account_windows import longs
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.kernels.column_values import distinct_rows, doubles, known
from headgate.pipeline.kernels.publish_limits import (
    BROKER_LIMIT_COLUMNS,
    PublishLimit,
    limit_of,
    quota_of,
)
from headgate.record.fields import QUOTA_TYPES

NO_ROW: Final = -1
"""Stands for the place of a row that is not there, and for the code of no limit."""

_TOPIC_LIMIT_COLUMNS: Final = (
    "publish_limit_messages_per_s",
    "publish_limit_bytes_per_s",
    "publish_limit_source",
)
_QUOTA_LIMITS: Final = {"size": "quota_size_limit_bytes", "time": "quota_time_limit_ns"}
_QUOTA_LEVELS: Final = {"size": "backlog_bytes", "time": "oldest_age_ns"}

Words = tuple[str, str, str]
"""Text and source of a limit or quota, and the text of another limit at the end."""

_NO_WORDS: Final = ("", "", "")


@dataclass(frozen=True, slots=True)
class Spans:
    """Some rows of a table in n groups: the minutes of one topic, in order of time.

    Group i has the rows from ``begins[i]`` to ``begins[i + 1]``. ``before`` is the place of the
    minute before each row, :data:`NO_ROW` if it is not known.
    """

    rows: Longs
    begins: Longs
    before: Longs

    def __len__(self) -> int:
        """The number of groups."""
        return len(self.begins)

    @property
    def first(self) -> Longs:
        """The first row of each group."""
        return self.rows[self.begins]

    @property
    def last(self) -> Longs:
        """The last row of each group."""
        return self.rows[np.append(self.begins[1:], len(self.rows)) - 1]

    def take(self, groups: Longs) -> Spans:
        """Some of the groups, in their order."""
        sizes = np.diff(np.append(self.begins, len(self.rows)))[groups]
        begins = np.cumsum(sizes) - sizes
        inside = np.arange(sizes.sum()) - np.repeat(begins, sizes)
        places = np.repeat(self.begins[groups], sizes) + inside
        return Spans(self.rows[places], begins, self.before[places])

    def numbers(self) -> Longs:
        """By row: the number of its group."""
        sizes = np.diff(np.append(self.begins, len(self.rows)))
        return np.repeat(np.arange(len(sizes)), sizes)


def park_sentences(
    table: pa.Table, spans: Spans, held_ns: Longs, duplicates: Longs, range_s: Doubles | None
) -> list[str]:
    """One sentence for each group.

    ``held_ns``, [ParkCause, n], is the time in which each cause parked. ``duplicates`` were dropped
    in each group. ``range_s`` is the length of each group, None for groups of one minute.
    """
    last = spans.last
    messages = np.zeros_like(held_ns)
    for cause in ParkCause:
        if cause is not ParkCause.MEMORY:
            messages[cause] = longs(table, f"parked_{cause.label}_messages")[last]
    texts = [past_publish_sentence([])] * len(spans)
    told = np.flatnonzero(((held_ns > 0) | (messages > 0)).any(axis=0) | (duplicates > 0))
    summaries: dict[int, list[PastParkSummary]] = {place: [] for place in told.tolist()}
    for cause in ParkCause:
        there = np.flatnonzero((held_ns[cause] > 0) | (messages[cause] > 0))
        words = _words(table, spans, cause, there, held_ns[cause] > 0)
        seconds = (held_ns[cause][there] / NS_PER_S).tolist()
        waiting = messages[cause][there].tolist()
        for place, held_s, count, said in zip(there.tolist(), seconds, waiting, words, strict=True):
            summaries[place].append(PastParkSummary(cause, held_s, count, *said))
    for place, parks in summaries.items():
        length_s = None if range_s is None else float(range_s[place])
        dropped = int(duplicates[place])
        texts[place] = past_publish_sentence(parks, range_s=length_s, duplicates=dropped)
    return texts


def _words(
    table: pa.Table, spans: Spans, cause: ParkCause, groups: Longs, has_held: Flags
) -> list[Words]:
    """The words about the limit or quota of a cause in some groups; empty if it did not park."""
    found: list[Words] = [_NO_WORDS] * len(groups)
    places = np.flatnonzero(has_held[groups])
    if len(places) == 0:
        return found
    held = spans.take(groups[places])
    if cause is ParkCause.BACKLOG_QUOTA:
        words = _quota_words(table, held)
    elif cause in PUBLISH_LIMITS:
        words = _limit_words(table, held, cause)
    else:
        return found
    for place, said in zip(places.tolist(), words, strict=True):
        found[place] = said
    return found


def _longest(spans: Spans, names: Longs, held_ns: Longs) -> Longs:
    """By group: the name that was held for longest in all, of equal ones the first."""
    group = spans.numbers()
    order = np.lexsort((names, group))
    name, of = names[order], group[order]
    begins = np.flatnonzero(np.concatenate(([True], (name[1:] != name[:-1]) | (of[1:] != of[:-1]))))
    total = np.add.reduceat(held_ns[order], begins)
    best = np.lexsort((order[begins], -total, of[begins]))
    is_first = np.concatenate(([True], np.diff(of[begins][best]) != 0))
    return np.asarray(name[begins][best][is_first], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Limits:
    """The distinct limits of one cause, and by row of the table the code of its own."""

    codes: Longs
    limits: list[PublishLimit]

    def tighter(self, spans: Spans) -> Longs:
        """By row of the spans: the lower of the limits at a minute's two ends."""
        new = self.codes[spans.rows]
        old = np.where(spans.before == NO_ROW, NO_ROW, self.codes[spans.before])
        rates = np.array([[*self._rates(limit)] for limit in self.limits] or [[inf, inf]])
        (old_messages, old_bytes), (messages, size) = rates[old].T, rates[new].T
        lower = (old_messages < messages) | ((old_messages == messages) & (old_bytes < size))
        return np.where(old < 0, new, np.where((new < 0) | lower, old, new))

    @staticmethod
    def _rates(named: PublishLimit) -> tuple[float, float]:
        messages, size = (named.limit.per_second(dimension) for dimension in Dimension)
        return inf if messages is None else messages, inf if size is None else size


def _limits_of(table: pa.Table, spans: Spans, cause: ParkCause) -> _Limits:
    """The limits of a cause in the rows of the spans, and in those before them."""
    names = BROKER_LIMIT_COLUMNS if cause is ParkCause.BROKER_RATE else _TOPIC_LIMIT_COLUMNS
    rows = np.unique(np.append(spans.rows, spans.before[spans.before != NO_ROW]))
    places, minutes = distinct_rows(table.select(names).take(pa.array(rows)), names)
    numbers: dict[PublishLimit, int] = {}
    own = [limit_of(cause, minute) for minute in minutes]
    of_place = [NO_ROW if each is None else numbers.setdefault(each, len(numbers)) for each in own]
    codes = np.full(table.num_rows, NO_ROW, dtype=np.int64)
    codes[rows] = np.array(of_place, dtype=np.int64)[places]
    return _Limits(codes, list(numbers))


def _limit_words(table: pa.Table, spans: Spans, cause: ParkCause) -> list[Words]:
    found = _limits_of(table, spans, cause)
    tighter = found.tighter(spans)
    held_ns = longs(table, f"parked_{cause.label}_ns")[spans.rows]
    longest = tighter
    if len(spans) != len(spans.rows):
        # The controller changes its limit in every cycle; over a range it counts as one limit.
        is_one = cause is ParkCause.ADAPTIVE
        longest = _longest(spans, np.minimum(tighter, 0) if is_one else tighter, held_ns)
        if is_one:
            there = np.where(tighter == NO_ROW, NO_ROW, np.arange(len(tighter)))
            latest = np.maximum.reduceat(there, spans.begins)
            longest = np.where(longest == NO_ROW, NO_ROW, tighter[latest])
    texts = [_limit_text(limit) for limit in found.limits]
    words = []
    for code, at_end in zip(longest.tolist(), found.codes[spans.last].tolist(), strict=True):
        if code == NO_ROW:
            words.append(_NO_WORDS)
            continue
        changed = ""
        if at_end == NO_ROW:
            changed = "gone"
        elif cause is not ParkCause.ADAPTIVE and (
            found.limits[at_end].limit != found.limits[code].limit
        ):
            changed = texts[at_end]
        words.append((texts[code], found.limits[code].source, changed))
    return words


def _quota_words(table: pa.Table, spans: Spans) -> list[Words]:
    rows = np.unique(np.append(spans.rows, spans.before[spans.before != NO_ROW]))
    of_rows, texts = _quotas(table.take(pa.array(rows)))
    codes = np.full(table.num_rows, NO_ROW, dtype=np.int64)
    codes[rows] = of_rows
    own = codes[spans.rows]
    # A quota that was removed within the minute is known from the previous minute.
    removed = (own == NO_ROW) & (spans.before != NO_ROW)
    own = np.where(removed, codes[spans.before], own)
    held_ns = longs(table, "parked_backlog_quota_ns")[spans.rows]
    longest = _longest(spans, own, held_ns)
    return [_NO_WORDS if code == NO_ROW else (*texts[code], "") for code in longest.tolist()]


def _quotas(minutes: pa.Table) -> tuple[Longs, list[tuple[str, str]]]:
    """By minute the code of its quota, and by code the text and source of the quota.

    Of two it is the fuller one. At equal use it is the size quota, which is the one that parks.
    """
    use = np.full((len(QUOTA_TYPES), minutes.num_rows), -inf)
    for place, quota in enumerate(QUOTA_TYPES):
        in_force = known(minutes, _QUOTA_LIMITS[quota])
        limit = np.nan_to_num(doubles(minutes, _QUOTA_LIMITS[quota]))
        taken = np.nan_to_num(doubles(minutes, _QUOTA_LEVELS[quota]))
        share = np.where(limit > 0, taken / np.where(limit > 0, limit, 1.0), inf)
        use[place] = np.where(in_force, share, -inf)
    fuller = use.argmax(axis=0)
    codes = np.full(minutes.num_rows, NO_ROW, dtype=np.int64)
    numbers: dict[tuple[str, str], int] = {}
    for place, quota in enumerate(QUOTA_TYPES):
        rows = np.flatnonzero((fuller == place) & (use[place] > -inf))
        names = (_QUOTA_LIMITS[quota], f"quota_{quota}_source", f"quota_{quota}_policy")
        places, quotas = distinct_rows(minutes.select(names).take(pa.array(rows)), names)
        texts = [_quota_text(each) for each in quotas]
        of_place = [numbers.setdefault(text, len(numbers)) for text in texts]
        codes[rows] = np.array(of_place, dtype=np.int64)[places]
    return codes, list(numbers)


_NO_QUOTA: Final = dict.fromkeys((*_QUOTA_LIMITS.values(), *_QUOTA_LEVELS.values()))


def _quota_text(quota: dict[str, object]) -> tuple[str, str]:
    return quota_of(_NO_QUOTA | quota) or ("", "")


def _limit_text(named: PublishLimit) -> str:
    return " and ".join(
        limit_text(named.limit, dimension)
        for dimension in Dimension
        if named.limit.amount(dimension) is not None
    )
