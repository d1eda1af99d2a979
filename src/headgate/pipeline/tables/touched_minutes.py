"""Which minutes of which hours changed, or are to be computed again.

For each hour it is one range of minutes: telemetry arrives in order, so what a trigger brings lies
together, and a few minutes more cost less than to tell them apart.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS

HOUR_MINUTES: Final = HOUR_NS // MINUTE_NS

WHOLE_HOUR: Final = range(HOUR_MINUTES)

TRIGGER_HOURS_MAX: Final = 2
"""Hours that one trigger of a stream touches: the present one, and the one before at its edge."""


class TouchedMinutes(Mapping[int, range]):
    """Minutes of hours: for each hour, counted since the epoch, a range within 0 to 59.

    As a collection it is that of its hours.
    """

    __slots__ = ("_minutes",)

    def __init__(self, minutes: Mapping[int, range] | None = None) -> None:
        self._minutes = {hour: found for hour, found in (minutes or {}).items() if found}

    @classmethod
    def whole(cls, hours: Iterable[int]) -> TouchedMinutes:
        """All minutes of some hours."""
        return cls(dict.fromkeys(hours, WHOLE_HOUR))

    @classmethod
    def between(cls, first_ns: int, last_ns: int) -> TouchedMinutes:
        """The minutes from one nanosecond to another, both included."""
        first, last = first_ns // MINUTE_NS, last_ns // MINUTE_NS
        return cls(
            {
                hour: range(
                    max(first - hour * HOUR_MINUTES, 0),
                    min(last - hour * HOUR_MINUTES, HOUR_MINUTES - 1) + 1,
                )
                for hour in range(first // HOUR_MINUTES, last // HOUR_MINUTES + 1)
            }
        )

    @classmethod
    def from_json(cls, text: str) -> TouchedMinutes:
        """From :meth:`to_json`."""
        found: dict[str, list[int]] = json.loads(text)
        return cls({int(hour): range(*ends) for hour, ends in found.items()})

    def to_json(self) -> str:
        """A text, as the options of a write and the log have it."""
        return json.dumps({str(h): [m.start, m.stop] for h, m in sorted(self._minutes.items())})

    def __getitem__(self, hour: int) -> range:
        return self._minutes[hour]

    def __iter__(self) -> Iterator[int]:
        return iter(self._minutes)

    def __len__(self) -> int:
        return len(self._minutes)

    def __repr__(self) -> str:
        return f"TouchedMinutes({self._minutes})"

    def __or__(self, other: TouchedMinutes) -> TouchedMinutes:
        """Both; of an hour of both, all minutes from the first to the last."""
        merged = dict(self._minutes)
        for hour, minutes in other.items():
            here = merged.get(hour, minutes)
            merged[hour] = range(min(here.start, minutes.start), max(here.stop, minutes.stop))
        return TouchedMinutes(merged)

    @property
    def partial(self) -> frozenset[int]:
        """The hours of which only a part is meant."""
        return frozenset(hour for hour, found in self._minutes.items() if found != WHOLE_HOUR)

    @property
    def minute_files(self) -> frozenset[int]:
        """The hours of which each minute gets files of its own, so that the next trigger replaces
        whole files: those that a trigger touches in part. A change of more hours is history, which
        later triggers leave alone."""
        return self.partial if len(self._minutes) <= TRIGGER_HOURS_MAX else frozenset()

    def only(self, hours: Collection[int]) -> TouchedMinutes:
        """What lies in some hours."""
        return TouchedMinutes({h: found for h, found in self._minutes.items() if h in hours})

    def whole_hours(self) -> TouchedMinutes:
        """All minutes of these hours."""
        return TouchedMinutes.whole(self._minutes)

    def widened(self, before: int, after: int) -> TouchedMinutes:
        """Also so many minutes before and after each range, in the hours beside it, too."""
        found = TouchedMinutes()
        for hour, minutes in self._minutes.items():
            start = hour * HOUR_MINUTES
            found |= TouchedMinutes.between(
                (start + minutes.start - before) * MINUTE_NS,
                (start + minutes.stop - 1 + after) * MINUTE_NS,
            )
        return found

    def aligned(self, step: int) -> TouchedMinutes:
        """Whole parts of so many minutes, of which an hour has a whole number."""
        return TouchedMinutes(
            {
                hour: range(found.start // step * step, -(-found.stop // step) * step)
                for hour, found in self._minutes.items()
            }
        )

    def overlaps(self, first_ns: int, last_ns: int) -> bool:
        """Whether any of these minutes lies between two nanoseconds, both included."""
        return any(
            minutes.start <= (last_ns - hour * HOUR_NS) // MINUTE_NS
            and (first_ns - hour * HOUR_NS) // MINUTE_NS < minutes.stop
            for hour, minutes in self._within(first_ns, last_ns)
        )

    def contains(self, first_ns: int, last_ns: int) -> bool:
        """Whether all minutes between two nanoseconds, both included, are of these."""
        hours = range(first_ns // HOUR_NS, last_ns // HOUR_NS + 1)
        return all(hour in self._minutes for hour in hours) and all(
            minutes.start <= max(0, (first_ns - hour * HOUR_NS) // MINUTE_NS)
            and min(HOUR_MINUTES - 1, (last_ns - hour * HOUR_NS) // MINUTE_NS) < minutes.stop
            for hour, minutes in self._within(first_ns, last_ns)
        )

    def _within(self, first_ns: int, last_ns: int) -> Iterator[tuple[int, range]]:
        for hour in range(first_ns // HOUR_NS, last_ns // HOUR_NS + 1):
            if hour in self._minutes:
                yield hour, self._minutes[hour]
