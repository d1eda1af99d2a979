"""What a topic's producers want and its consumers can, step by step, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from headgate.flow.quota.backlog_quota import QuotaPolicy

Doubles: TypeAlias = npt.NDArray[np.float64]

NO_LIMIT: Final = -1.0
"""Stands for a quota that is not there."""

POLICY_CODES: Final[dict[QuotaPolicy, int]] = {
    policy: code for code, policy in enumerate(QuotaPolicy, 1)
}
"""A quota's policy as a number; 0: there is no quota."""


@dataclass(frozen=True, slots=True)
class Step:
    """One stretch of constant rates; also the columns of :attr:`Load.steps`, in this order."""

    arrivals_bytes_per_s: float
    """What producers wanted to publish."""
    message_bytes: float
    """Size of a message, above 0."""
    capacity_bytes_per_s: float
    """What consumers could take."""
    size_limit_bytes: float = NO_LIMIT
    """Of the recorded size quota."""
    size_policy: float = 0
    """One of :data:`POLICY_CODES`."""
    time_limit_ms: float = NO_LIMIT
    time_policy: float = 0
    limit_messages_per_s: float = inf
    """The recorded publish limit; infinite where there is none."""
    limit_bytes_per_s: float = inf


STEP_COLUMNS: Final = tuple(field.name for field in fields(Step))


@dataclass(frozen=True, slots=True)
class Load:
    """One topic over time."""

    step_ns: int
    """Length of every step. Steps follow each other; time of which nothing is known is left out."""
    steps: Doubles
    """[steps x columns of :class:`Step`], C order."""
    backlog_bytes: float = 0.0
    """At the beginning."""
    oldest_age_s: float = 0.0
    """Of the oldest byte of that backlog."""
    from_ns: int = 0
    to_ns: int = 0
    censored_share: float = 0.0
    """Part of the steps in which a limit or quota held producers all along: what they wanted is
    known only as far as they dared to send it."""
    drain_known_share: float = 0.0
    """Part of the steps in which old messages waited, so that consumers showed what they can."""

    def step(self, number: int) -> Step:
        """One step as numbers with names."""
        return Step(*self.steps[number].tolist())


def steps_of(rows: list[Step]) -> Doubles:
    """Steps as :attr:`Load.steps` has them."""
    values = [[getattr(row, name) for name in STEP_COLUMNS] for row in rows]
    return np.array(values, dtype=np.float64).reshape(len(rows), len(STEP_COLUMNS))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one topic under one policy: the columns of ``policy_backtest``, in order."""

    seconds_over_quota: float
    """Time in which a quota that stops producers was reached."""
    quota_seconds: float
    """Time in which any quota was in force."""
    drain_used: float
    """Part of what consumers could do that they did, while producers waited; 1 if none did."""
    wanted_bytes: float
    """What producers wanted to publish; the same under every policy."""
    published_bytes: float
    parked_seconds: float
    """Time in which anything waited, or was refused."""
    parked_bytes_max: float
    backlog_bytes_max: float
    activations: float
    """How often a limit of the controller began."""
    jitter: float
    """Sum of the changes of what is published from step to step, in parts of all of it."""
    evicted_bytes: float


OUTCOME_COLUMNS: Final = tuple(field.name for field in fields(Outcome))


def outcome_row(outcome: Outcome) -> list[Any]:
    """The values in the order of :data:`OUTCOME_COLUMNS`."""
    return [getattr(outcome, name) for name in OUTCOME_COLUMNS]
