"""Two scrapes of a broker, side by side: how much counters grew, and what came of a subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from headgate.base.units import NS_PER_S
from headgate.pipeline.scrapes.reading import Scrape, TopicName, Values

Growth: TypeAlias = tuple[int, int]
"""What a cumulative field has in a subject's first and in its second row."""


@dataclass(frozen=True, slots=True)
class ScrapePair:
    """Two scrapes of a broker, in the order of time; ``label`` is what its folder is called."""

    label: str
    before: Scrape
    after: Scrape
    before_ns: int
    after_ns: int

    @property
    def elapsed_ns(self) -> int:
        """Time between them."""
        return self.after_ns - self.before_ns

    @property
    def restarted(self) -> bool:
        """Whether the broker's process began between them: it counts from zero."""
        started_s = [scrape.broker.get("started_s") for scrape in (self.before, self.after)]
        return None not in started_s and started_s[0] != started_s[1]


VALUE_MAX: Final = 1e18
"""What is beyond it does not fit a column, or would not together with others."""


class Counters:
    """How much the counters of one subject grew. One that fell was at zero in between."""

    def __init__(self, before: Values, after: Values, *, restarted: bool) -> None:
        self._before, self._after, self._restarted = before, after, restarted

    def growth(self, name: str, scale: int = 1) -> Growth | None:
        """The value of each row: 0 and the growth; of a counter that fell, what it was and is.
        None where one of the texts does not have it."""
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
        """The growth itself; 0 where it is not known."""
        found = self.growth(name)
        return 0 if found is None else found[1]

    def account_ns(self, names: Sequence[str]) -> list[int]:
        """Growth of counters of seconds; one that is absent stands at zero."""
        found = []
        for name in names:
            old, new = self._before.get(name, 0.0), self._after.get(name, 0.0)
            grown_s = new if self._restarted or new < old else new - old
            found.append(max(0, round(min(grown_s * NS_PER_S, VALUE_MAX))))
        return found


@dataclass(frozen=True, slots=True)
class Difference:
    """What two scrapes say of one subject, by field of the record.

    ``same`` says whose it is. ``first`` and ``second`` are its values as of each scrape.
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
    """Put together what is known of a subject; amounts that are None stay out."""
    known = {field: growth for field, growth in counted.items() if growth is not None}
    return Difference(
        {"cluster": name.cluster, "topic": name.topic, "partition": name.partition, **same},
        {**first_levels, **{field: start for field, (start, _) in known.items()}},
        {**levels, **{field: end for field, (_, end) in known.items()}},
    )


def whole_level(values: Values, field: str, scale: int = 1) -> int | None:
    """A level as a whole number; None where the text has none, says none by -1 or by the largest
    number of Java, or has one that no column can hold."""
    value = values.get(field)
    return None if value is None or not 0 <= value * scale <= VALUE_MAX else round(value * scale)
