"""Sentences about the backlog quotas of topics in minutes, each built once by
``headgate.flow.sentences.quota``.

Minutes in which nothing changes, as those of an idle topic, share one text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Literal, cast

import numpy as np
import pyarrow as pa

from headgate.base.texts import number, size_text, time_text
from headgate.base.units import NS_PER_S
from headgate.flow.sentences.quota import BreachForecast, quota_sentence
from headgate.pipeline.kernels.account_windows import longs
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.kernels.column_values import distinct_rows, known, optional, quotients
from headgate.pipeline.kernels.quota_forecast import HELD_NS_MIN, METHODS, QuotaForecasts
from headgate.pipeline.tables.quotas import THEIL_SEN_METHOD
from headgate.record.fields import QUOTA_TYPES

NO_QUOTA: Final = "no backlog quota is in force at the end of this minute"

_THEIL_SEN: Final = METHODS.index(THEIL_SEN_METHOD)


@dataclass(frozen=True, slots=True)
class QuotaArrays:
    """One type of quota in n minutes, at their ends. NaN stands for unknown."""

    kind: str
    """One of ``QUOTA_TYPES``."""
    forecast: QuotaForecasts
    use: Doubles
    """Of the limit; NaN if the limit is 0 or the backlog is unknown."""
    use_max: Doubles
    left_earliest_s: Doubles
    """The seconds of the forecast as of the minute's end."""
    left_likely_s: Doubles
    left_latest_s: Doubles

    @property
    def order(self) -> list[Doubles]:
        """Sort keys that put the earliest breach first, the most important first."""
        made = (self.forecast.likely_s, self.forecast.earliest_s)
        return [np.where(np.isnan(seconds), inf, seconds) for seconds in made]

    def breaks_before(self, other: QuotaArrays) -> Flags:
        """In which minutes it is reached before the other one."""
        return _is_less(self.order, other.order)

    @property
    def is_known(self) -> Flags:
        """In which minutes something can be said about it."""
        return self.forecast.in_force & (self.forecast.reached | ~np.isnan(self.use))

    @property
    def urgency(self) -> list[Doubles]:
        """Sort keys that put the most urgent quota first."""
        return [(~self.forecast.reached).astype(np.float64), *self.order, -np.nan_to_num(self.use)]


def _is_less(keys: Sequence[Doubles], others: Sequence[Doubles]) -> Flags:
    """Which keys come before those of the others."""
    less = np.zeros(len(keys[0]), dtype=np.bool_)
    for key, other in reversed(list(zip(keys, others, strict=True))):
        less = (key < other) | ((key == other) & less)
    return less


def quota_sentences(minutes: pa.Table, quotas: Sequence[QuotaArrays]) -> list[str | None]:
    """One text for each minute; None if nothing is known.

    ``quotas`` are those of size and of time.
    """
    size, time = quotas
    texts = np.full(minutes.num_rows, None, dtype=object)
    texts[~(size.forecast.in_force | time.forecast.in_force)] = NO_QUOTA
    is_time = time.is_known & (~size.is_known | _is_less(time.urgency, size.urgency))
    for quota, rows in ((time, is_time), (size, size.is_known & ~is_time)):
        places = np.flatnonzero(rows)
        texts[places] = _states(minutes.take(pa.array(places)), quota, places)
    for place, acts in _acts(minutes).items():
        state = texts[place]
        texts[place] = acts if state is None else f"{state}; {acts}"
    return cast(list[str | None], texts.tolist())


def _states(minutes: pa.Table, quota: QuotaArrays, places: Longs) -> list[str]:
    """The state of a quota at the end of some minutes, in words.

    ``minutes`` are those at ``places`` of all.
    """
    limit = "quota_size_limit_bytes" if quota.kind == "size" else "quota_time_limit_ns"
    names = (limit, f"quota_{quota.kind}_source", f"quota_{quota.kind}_policy")
    settings, rows = distinct_rows(minutes, (*names, "oldest_subscription"))
    limits = [
        size_text(row[limit]) if quota.kind == "size" else time_text(row[limit] / NS_PER_S)
        for row in rows
    ]
    ages = longs(minutes, "oldest_age_ns")
    age_s = quotients(ages, np.full_like(ages, NS_PER_S))
    figures = (
        np.nan_to_num(quota.use[places]).tolist(),
        optional(np.where(known(minutes, "oldest_age_ns"), age_s, np.nan)),
        optional(quota.left_earliest_s[places]),
        optional(quota.left_likely_s[places]),
        optional(quota.left_latest_s[places]),
        # The broker's own forecast has no band, and without a breach there is none.
        (quota.forecast.method[places] == _THEIL_SEN).tolist(),
        quota.forecast.stopped[places].tolist(),
        quota.forecast.reached[places].tolist(),
    )
    texts: dict[tuple[Any, ...], str] = {}
    found = []
    for facts in zip(settings.tolist(), *figures, strict=True):
        text = texts.get(facts)
        if text is None:
            setting, use, oldest_s, earliest_s, likely_s, latest_s, has_band, stopped, reached = (
                facts
            )
            row = rows[setting]
            text = texts[facts] = quota_sentence(
                use=use,
                limit_text=limits[setting],
                source=row[names[1]] or "",
                kind=cast(Literal["size", "time"], quota.kind),
                policy=row[names[2]] or "",
                subscription=row["oldest_subscription"],
                oldest_age_s=oldest_s,
                seconds_to_breach=likely_s,
                forecast=BreachForecast(earliest_s, likely_s, latest_s) if has_band else None,
                exceeded=stopped,
                reached="in this minute" if reached else "",
            )
        found.append(text)
    return found


def _acts(minutes: pa.Table) -> dict[int, str]:
    """What quotas did, in words, by the place of the minute; only of minutes with an act."""
    held_ns = longs(minutes, "parked_backlog_quota_ns")
    acts, messages, sizes = (
        np.stack([longs(minutes, f"eviction_{quota}_{amount}") for quota in QUOTA_TYPES])
        for amount in ("acts", "messages", "bytes")
    )
    evicted = (acts != 0).any(axis=0)
    found: dict[int, str] = {}
    for place in np.flatnonzero((held_ns >= HELD_NS_MIN) | evicted).tolist():
        parts = []
        if held_ns[place] >= HELD_NS_MIN:
            held_s = int(held_ns[place]) / NS_PER_S
            parts.append(f"sent messages were held for {number(held_s)} s of this minute")
        if evicted[place]:
            lost = sum(messages[:, place].tolist())
            amount = "1 message" if lost == 1 else f"{lost:,} messages"
            size = size_text(sum(sizes[:, place].tolist()))
            parts.append(f"evictions took {amount} ({size}) in this minute")
        found[place] = "; ".join(parts)
    return found
