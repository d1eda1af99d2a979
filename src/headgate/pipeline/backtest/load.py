"""The load of a topic over time, for a replay."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import Any, Final

import numpy as np

from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.pipeline.kernels.array_types import Doubles

NO_LIMIT: Final = -1.0
"""The limit of a quota that does not exist."""

POLICY_CODES: Final[dict[QuotaPolicy, int]] = {
    policy: code for code, policy in enumerate(QuotaPolicy, 1)
}
"""A quota's policy as a number; 0 without a quota."""


@dataclass(frozen=True, slots=True)
class Step:
    """An interval of constant rates; its fields are the columns of :attr:`Load.steps`, in order."""

    arrivals_bytes_per_s: float
    """The rate that producers wanted to publish."""
    message_bytes: float
    """Size of a message, above 0."""
    capacity_bytes_per_s: float
    """The rate that consumers could take."""
    size_limit_bytes: float = NO_LIMIT
    """Limit of the recorded size quota."""
    size_policy: float = 0
    """One of :data:`POLICY_CODES`."""
    time_limit_ms: float = NO_LIMIT
    time_policy: float = 0
    limit_messages_per_s: float = inf
    """The recorded publish limit; infinite without one."""
    limit_bytes_per_s: float = inf


STEP_COLUMNS: Final = tuple(field.name for field in fields(Step))


@dataclass(frozen=True, slots=True)
class Load:
    """The load of one topic."""

    step_ns: int
    """Length of every step. Steps are consecutive; unknown time is left out."""
    steps: Doubles
    """[steps x columns of :class:`Step`], C order."""
    backlog_bytes: float = 0.0
    """Backlog at the beginning."""
    oldest_age_s: float = 0.0
    """Age of its oldest byte."""
    from_ns: int = 0
    to_ns: int = 0
    censored_share: float = 0.0
    """Share of the steps in which a limit or quota held producers all the time, so that their
    demand is known only in part."""
    drain_known_share: float = 0.0
    """Share of the steps in which old messages waited, so that the capacity of consumers was
    measured."""

    def step(self, number: int) -> Step:
        """One step, with named fields."""
        return Step(*self.steps[number].tolist())


def steps_of(rows: list[Step]) -> Doubles:
    """Steps in the form of :attr:`Load.steps`."""
    values = [[getattr(row, name) for name in STEP_COLUMNS] for row in rows]
    return np.array(values, dtype=np.float64).reshape(len(rows), len(STEP_COLUMNS))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one topic under one policy: the columns of ``policy_backtest``, in order."""

    seconds_over_quota: float
    """Time in which a quota that stops producers was reached."""
    quota_seconds: float
    """Time in which any quota was in force."""
    drain_used: float
    """Share of the consumers' capacity that was used while producers waited; 1 if none waited."""
    wanted_bytes: float
    """Bytes that producers wanted to publish; the same under every policy."""
    published_bytes: float
    parked_seconds: float
    """Time in which sends were parked or refused."""
    parked_bytes_max: float
    backlog_bytes_max: float
    activations: float
    """How often a limit of the controller began."""
    jitter: float
    """Sum of the changes in published bytes from step to step, divided by all published bytes."""
    evicted_bytes: float


OUTCOME_COLUMNS: Final = tuple(field.name for field in fields(Outcome))


def outcome_row(outcome: Outcome) -> list[Any]:
    """The values in the order of :data:`OUTCOME_COLUMNS`."""
    return [getattr(outcome, name) for name in OUTCOME_COLUMNS]
