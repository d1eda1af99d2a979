"""Backlogs as they come: families of series, by the minute, each of a kind that forecasts meet.

Levels are in parts of the limit. Everything follows from the seed.
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


FAMILIES: dict[str, Callable[[np.random.Generator], Levels]] = {
    family.__name__: family
    for family in (linear, noisy, bursty, sawtooth, diurnal, ramping, drifting, redeployed)
}
"""All of them by name."""


def family(name: str, count: int, seed: int) -> Levels:
    """Some series of one family: (count, :data:`MINUTES`)."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(name)])
    return np.stack([FAMILIES[name](rng) for _ in range(count)])
