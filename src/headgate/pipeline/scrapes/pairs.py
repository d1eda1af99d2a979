"""Growth of a subject's counters between two scrapes of a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from headgate.base.units import NS_PER_S
from headgate.pipeline.scrapes.reading import VALUE_MAX, Scrape, TopicName, Values

Growth: TypeAlias = tuple[int, int]
"""Values of a cumulative field in the first and the second row of a subject."""


@dataclass(frozen=True, slots=True)
class ScrapePair:
    """Two consecutive scrapes of a broker; ``label`` is the name of its folder."""

    label: str
    before: Scrape
    after: Scrape
    before_ns: int
    after_ns: int

    @property
    def elapsed_ns(self) -> int:
        """Time between the two scrapes."""
        return self.after_ns - self.before_ns

    @property
    def restarted(self) -> bool:
        """Whether the broker restarted between the scrapes, so that its counters began at zero."""
        started_s = [scrape.broker.get("started_s") for scrape in (self.before, self.after)]
        return None not in started_s and started_s[0] != started_s[1]


class Counters:
    """Growth of one subject's counters. A counter that fell was reset to zero in between."""

    def __init__(self, before: Values, after: Values, *, restarted: bool) -> None:
        self._before, self._after, self._restarted = before, after, restarted

    def growth(self, name: str, scale: int = 1) -> Growth | None:
        """Values of the two rows: 0 and the growth, or both readings of a counter that fell.

        None if one of the scrapes lacks the counter.
        """
        old, new = self._before.get(name), self._after.get(name)
        if old is None or new is None:
            return None
        if max(abs(old), abs(new)) * scale > VALUE_MAX:
            return None
        start, end = round(old * scale), max(0, round(new * scale))
        if self._restarted:
            return 0, end
        return (start, end) if end < start else (0, end - start)

    def amount(self, name: str) -> int:
        """The growth; 0 if it is not known."""
        found = self.growth(name)
        return 0 if found is None else found[1]

    def account_ns(self, names: Sequence[str]) -> list[int]:
        """Growth of counters of seconds, in nanoseconds; an absent counter is at zero."""
        found = []
        for name in names:
            old, new = self._before.get(name, 0.0), self._after.get(name, 0.0)
            grown_s = new if self._restarted or new < old else new - old
            found.append(max(0, round(min(grown_s * NS_PER_S, VALUE_MAX))))
        return found


@dataclass(frozen=True, slots=True)
class Difference:
    """Values of one subject at two scrapes, by telemetry field.

    ``same`` identifies the subject. ``first`` and ``second`` are its values at each scrape.
    """

    same: dict[str, Any]
    first: dict[str, Any]
    second: dict[str, Any]


def difference(
    name: TopicName,
    counted: Mapping[str, Growth | None],
    first_levels: dict[str, Any],
    levels: dict[str, Any],
    **same: str,
) -> Difference:
    """The difference of one subject, without the amounts that are None."""
    known = {field: growth for field, growth in counted.items() if growth is not None}
    return Difference(
        {"cluster": name.cluster, "topic": name.topic, "partition": name.partition, **same},
        {**first_levels, **{field: start for field, (start, _) in known.items()}},
        {**levels, **{field: end for field, (_, end) in known.items()}},
    )


def whole_level(values: Values, field: str, scale: int = 1) -> int | None:
    """A level as a whole number; None if the scrape lacks it, or it fits no column.

    Brokers report -1, or the largest number of Java, for no value.
    """
    value = values.get(field)
    return None if value is None or not 0 <= value * scale <= VALUE_MAX else round(value * scale)
