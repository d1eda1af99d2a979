"""Backlogs and ages as they come: families of series, by the minute, of kinds that forecasts meet.

Levels are in parts of the limit; that of an age is an hour. Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Levels: TypeAlias = npt.NDArray[np.float64]

MINUTES = 600


def _walk(steps: Levels, start: float) -> Levels:
    """Sums of steps that never fall below 0."""
    found = np.empty(len(steps))
    level = start
    for place, step in enumerate(steps):
        level = max(level + step, 0.0)
        found[place] = level
    return found


def linear(rng: np.random.Generator) -> Levels:
    """A steady producer, no consumer."""
    minutes = np.arange(MINUTES, dtype=np.float64)
    return np.asarray(rng.uniform(0, 0.4) + rng.uniform(0.0005, 0.004) * minutes, np.float64)


def noisy(rng: np.random.Generator) -> Levels:
    """The same, acknowledged in lumps of some percent of the limit."""
    noise = rng.normal(0, rng.uniform(0.01, 0.05), MINUTES)
    return np.maximum(linear(rng) + noise, 0.0)


def bursty(rng: np.random.Generator) -> Levels:
    """Producers on and off for some minutes, consumers that catch up in between."""
    steps = np.empty(MINUTES)
    on_minutes, off_minutes = rng.uniform(5, 12, 2)
    rise = rng.uniform(0.006, 0.02)
    fall = rng.uniform(0.1, 0.8) * rise * on_minutes / off_minutes
    is_on, place = bool(rng.random() < 0.5), 0
    while place < MINUTES:
        length = int(rng.exponential(on_minutes if is_on else off_minutes)) + 1
        steps[place : place + length] = rise if is_on else -fall
        is_on, place = not is_on, place + length
    return _walk(steps * rng.uniform(0.7, 1.3, MINUTES), rng.uniform(0, 0.3))


def sawtooth(rng: np.random.Generator) -> Levels:
    """Evictions: whenever the limit is reached, a tenth goes."""
    found = np.empty(MINUTES)
    level, rise = rng.uniform(0.3, 0.9), rng.uniform(0.002, 0.007)
    for place in range(MINUTES):
        level += rise * rng.uniform(0.5, 1.5)
        if level >= 1.0:
            level = 0.9
        found[place] = level
    return found


def diurnal(rng: np.random.Generator) -> Levels:
    """A producer that follows the day, consumers that do not."""
    angle = 2 * np.pi * (np.arange(MINUTES) + rng.uniform(0, 1_440)) / 1_440
    published = 1 + rng.uniform(0.3, 0.9) * np.sin(angle)
    steps = published * rng.uniform(0.9, 1.1, MINUTES) - rng.uniform(0.8, 1.1)
    return _walk(rng.uniform(0.003, 0.01) * steps, rng.uniform(0, 0.5))


def ramping(rng: np.random.Generator) -> Levels:
    """A producer that publishes more and more."""
    minutes = np.arange(MINUTES)
    curve = rng.uniform(0, 0.001) * minutes + rng.uniform(0.5, 6) * 1e-6 * minutes**2
    noise = rng.normal(0, rng.uniform(0, 0.005), MINUTES)
    return np.maximum(rng.uniform(0, 0.3) + curve + noise, 0.0)


def drifting(rng: np.random.Generator) -> Levels:
    """A random walk with a drift."""
    steps = rng.normal(rng.uniform(-0.0002, 0.002), rng.uniform(0.003, 0.015), MINUTES)
    return _walk(steps, rng.uniform(0, 0.6))


def redeployed(rng: np.random.Generator) -> Levels:
    """Consumers come and go: another pace about every hour."""
    steps = np.empty(MINUTES)
    place = 0
    while place < MINUTES:
        length = int(rng.exponential(60)) + 10
        steps[place : place + length] = rng.uniform(-0.004, 0.008)
        place += length
    return _walk(steps + rng.normal(0, 0.001, MINUTES), rng.uniform(0, 0.4))


def _ages(published: Levels, taken: Levels) -> Levels:
    """The age of the oldest message of a queue, of what is published and taken in each minute."""
    total = np.append(0.0, np.cumsum(published))
    found, done = np.empty(MINUTES), 0.0
    for minute in range(MINUTES):
        done = min(done + taken[minute], total[minute + 1])
        # The time at which that was published.
        found[minute] = minute + 1 - np.interp(done, total, np.arange(MINUTES + 1))
    return found / 60.0


def lagging(rng: np.random.Generator) -> Levels:
    """Consumers that take a part of what comes."""
    pace = rng.uniform(0.5, 0.98)
    return _ages(rng.uniform(0.9, 1.1, MINUTES), pace * rng.uniform(0.8, 1.2, MINUTES))


def lagging_by_day(rng: np.random.Generator) -> Levels:
    """The same, of a producer that follows the day."""
    angle = 2 * np.pi * (np.arange(MINUTES) + rng.uniform(0, 1_440)) / 1_440
    return _ages(1 + 0.5 * np.sin(angle), np.full(MINUTES, rng.uniform(0.6, 1.0)))


def failing(rng: np.random.Generator) -> Levels:
    """Consumers that fail for half an hour about every hour, and catch up in between."""
    taken, place = np.full(MINUTES, 1.3), 0
    while place < MINUTES:
        place += int(rng.exponential(60)) + 5
        length = int(rng.exponential(40)) + 5
        taken[place : place + length] = rng.uniform(0, 0.5)
        place += length
    return _ages(rng.uniform(0.9, 1.1, MINUTES), taken)


def stuck(rng: np.random.Generator) -> Levels:
    """Single messages that stay unacknowledged, each for three quarters of an hour on average."""
    found, age = np.empty(MINUTES), 0.0
    for minute in range(MINUTES):
        age = age + 1 / 60 if rng.random() > 1 / 45 else rng.uniform(0, 0.01)
        found[minute] = age
    return found


FAMILIES: dict[str, Callable[[np.random.Generator], Levels]] = {
    family.__name__: family
    for family in (linear, noisy, bursty, sawtooth, diurnal, ramping, drifting, redeployed)
}
"""Those of backlogs, by name."""

AGE_FAMILIES: dict[str, Callable[[np.random.Generator], Levels]] = {
    family.__name__: family for family in (lagging, lagging_by_day, failing, stuck)
}
"""Those of ages, by name."""


def family(name: str, count: int, seed: int) -> Levels:
    """Some series of one family: (count, :data:`MINUTES`)."""
    families = FAMILIES | AGE_FAMILIES
    rng = np.random.default_rng([seed, list(families).index(name)])
    return np.stack([families[name](rng) for _ in range(count)])
