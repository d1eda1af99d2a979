"""What the agent looks at, and when: a law, with time and chance as arguments.

A look is due a period after the last one ended. Suspects and proofs are jittered from half a period
to one and a half: Pulsar's limiters work in whole seconds, and looks in step with them would see
the same state each time. A look that failed waits longer, the more often the longer.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_MINUTE, NS_PER_S, S_PER_HOUR


class LookKind(enum.IntEnum):
    """What is asked, the most urgent first."""

    BROKERS = 0
    """The brokers of the cluster."""
    PARTITIONS = 1
    """How many partitions a topic has."""
    TOPICS = 2
    """The topics of a namespace."""
    STATS = 3
    """A suspect: the statistics of a topic or partition."""
    PROOF = 4
    """The ``internalStats`` of a topic or partition."""
    LIMITS = 5
    """The limits of a topic."""
    SURVEY = 6
    """All loaded topics of a broker."""
    SWEEP = 7
    """The statistics of a topic of a namespace, in place of a survey."""
    QUOTAS = 8
    """The backlog quotas of a namespace."""


class Look(NamedTuple):
    """One thing to ask."""

    kind: LookKind
    subject: str
    """A broker, a namespace, a topic or a partition; empty for the list of brokers."""


OF_SUPERUSERS: Final = (LookKind.BROKERS, LookKind.SURVEY)
"""What a cluster answers to superusers alone."""

PERIOD_S_MIN: Final = 0.5
_FAILURES_COUNTED_MAX: Final = 5

OVERDUE_NS: Final = 15 * NS_PER_S
"""A look that has waited for so long comes before more urgent kinds: where there is time for few
looks, suspects would else be all that is looked at, and nothing else would be found."""
YIELDED_NS: Final = 300 * NS_PER_S
"""How long a survey that failed gives way to others: surveys are made one at a time, and brokers
that do not answer would take the time of all."""

_JITTERED: Final = (LookKind.STATS, LookKind.PROOF)
_JITTER: Final = 1.0
_LITTLE_JITTER: Final = 0.2
"""Of the other looks, so that many brokers are not asked at the same instant for ever."""

_DEFAULTS_S: Final[Mapping[LookKind, float]] = {
    LookKind.BROKERS: 60.0,
    LookKind.PARTITIONS: 60.0,
    LookKind.TOPICS: 60.0,
    LookKind.SURVEY: 60.0,
    LookKind.SWEEP: 60.0,
    LookKind.LIMITS: 60.0,
    LookKind.QUOTAS: 300.0,
    LookKind.PROOF: 15.0,
    LookKind.STATS: 5.0,
}


@dataclass(frozen=True, slots=True)
class LookPeriods:
    """Seconds between two looks of a kind; the others have their defaults.

    Raises :class:`InputError` if one is shorter than half a second or longer than an hour.
    """

    seconds: Mapping[LookKind, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, seconds in self.seconds.items():
            if not PERIOD_S_MIN <= seconds <= S_PER_HOUR:
                raise InputError(
                    f"a period of {seconds:g} s for {kind.name.lower()} is not allowed: "
                    f"{PERIOD_S_MIN:g} to {S_PER_HOUR:,} s is"
                )

    def of(self, kind: LookKind) -> float:
        """The period of a kind, in seconds."""
        return self.seconds.get(kind, _DEFAULTS_S[kind])


@dataclass(slots=True)
class _Planned:
    due_ns: int
    failures: int = 0
    is_running: bool = False
    is_wanted: bool = True

    def is_waiting(self) -> bool:
        """Whether it is to be asked when it is due."""
        return self.is_wanted and not self.is_running

    def turn(self, kind: LookKind, now_ns: int) -> tuple[bool, int, int]:
        """By which looks that are due take turns, the least first."""
        yields = kind is LookKind.SURVEY and self.failures
        since_ns = self.due_ns + YIELDED_NS if yields else self.due_ns
        is_urgent = now_ns - since_ns < OVERDUE_NS
        return is_urgent, kind if is_urgent else 0, since_ns


class LookPlan:
    """The looks at one cluster."""

    def __init__(self, periods: LookPeriods | None = None) -> None:
        self._periods = periods or LookPeriods()
        self._looks: dict[LookKind, dict[str, _Planned]] = {kind: {} for kind in LookKind}

    def want(self, kind: LookKind, subjects: Iterable[str], now_ns: int) -> None:
        """Look at ``subjects`` from now on, and at no others of this kind. New ones are due now.

        One that is wanted again within its period keeps its time: who comes and goes is not asked
        more often.
        """
        wanted = set(subjects)
        kept = {
            subject: planned
            for subject, planned in self._looks[kind].items()
            if subject in wanted or planned.is_running or planned.due_ns > now_ns
        }
        for subject, planned in kept.items():
            planned.is_wanted = subject in wanted
        for subject in wanted - kept.keys():
            kept[subject] = _Planned(now_ns)
        self._looks[kind] = kept

    def forget(self, look: Look) -> None:
        """Look at this no more, until it is wanted again."""
        self._looks[look.kind].pop(look.subject, None)

    def subjects(self, kind: LookKind) -> list[str]:
        """What is looked at."""
        return [subject for subject, planned in self._looks[kind].items() if planned.is_wanted]

    def due(self, now_ns: int) -> list[Look]:
        """The looks that are due and not under way: those that are overdue, what has waited longest
        first, then by kind, the most urgent first. Surveys that failed give way for
        :data:`YIELDED_NS`."""
        found = [
            (planned.turn(kind, now_ns), Look(kind, subject))
            for kind, looks in self._looks.items()
            for subject, planned in looks.items()
            if planned.due_ns <= now_ns and planned.is_waiting()
        ]
        return [look for _, look in sorted(found)]

    def note_start(self, look: Look) -> None:
        """A look is under way."""
        if planned := self._looks[look.kind].get(look.subject):
            planned.is_running = True

    def note_end(self, look: Look, now_ns: int, chance: float, *, is_good: bool) -> None:
        """A look ended. ``chance`` is a random number from 0 to 1."""
        if (planned := self._looks[look.kind].get(look.subject)) is None:
            return
        planned.is_running = False
        planned.failures = 0 if is_good else min(planned.failures + 1, _FAILURES_COUNTED_MAX)
        width = _JITTER if look.kind in _JITTERED else _LITTLE_JITTER
        period_ns = self._periods.of(look.kind) * NS_PER_S * (1.0 + width * (chance - 0.5))
        longest_ns = max(period_ns, NS_PER_MINUTE)
        planned.due_ns = now_ns + round(min(period_ns * 2**planned.failures, longest_ns))

    def wait_ns(self, now_ns: int) -> int | None:
        """Time until a look is due that is not under way; 0 if one is. None without any."""
        waiting = [
            planned.due_ns
            for looks in self._looks.values()
            for planned in looks.values()
            if planned.is_waiting()
        ]
        return max(0, min(waiting) - now_ns) if waiting else None
