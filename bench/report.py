"""What a bench prints: one table of figures, each with its target and whether it was met."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from headgate import __version__


@dataclass(frozen=True)
class Row:
    """One line: what was measured, the figure as text, the target and how it went."""

    name: str
    figure: str
    target: str = ""
    verdict: str = ""


@dataclass
class Table:
    """The figures of one bench, printed when all are there."""

    title: str
    rows: list[Row] = field(default_factory=list)

    def add(self, name: str, figure: str) -> None:
        """A figure without a target: a peer, a limit, or what helps to read the others."""
        self.rows.append(Row(name, figure))

    def check(self, name: str, value: float, unit: str, limit: float, *, note: str = "") -> None:
        """A figure that must be at most ``limit``, both in ``unit``."""
        verdict = "pass" if value <= limit else "MISS"
        figure = f"{number(value)} {unit}{f'  ({note})' if note else ''}"
        self.rows.append(Row(name, figure, f"<= {number(limit)} {unit}", verdict))

    def check_least(self, name: str, value: float, unit: str, least: float) -> None:
        """A figure that must be at least ``least``, both in ``unit``."""
        verdict = "pass" if value >= least else "MISS"
        self.rows.append(
            Row(name, f"{number(value)} {unit}", f">= {number(least)} {unit}", verdict)
        )

    def aim(self, name: str, value: float, unit: str, limit: float) -> None:
        """A figure that ought to be at most ``limit``: an aim, not a promise."""
        verdict = "met" if value <= limit else "not met"
        figure = f"{number(value)} {unit}"
        self.rows.append(Row(name, figure, f"aim {number(limit)} {unit}", verdict))

    def print(self) -> None:
        """Write the table to stdout."""
        names = max(len(row.name) for row in self.rows)
        figures = max(len(row.figure) for row in self.rows)
        targets = max(len(row.target) for row in self.rows)
        print(f"{self.title}\n{_machine()}")
        for row in self.rows:
            line = f"  {row.name:<{names}}  {row.figure:<{figures}}"
            print(f"{line}  {row.target:<{targets}}  {row.verdict}".rstrip())
        print(flush=True)


def number(value: float) -> str:
    """Three significant digits, without an exponent, thousands apart."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The interval of 95 % for the median of what these are a sample of, from the order of the
    values alone: single ones that another program disturbed do not widen it. With fewer than
    six it is all of them."""
    ordered = sorted(values)
    below = max(int(len(ordered) / 2 - 0.98 * math.sqrt(len(ordered))) - 1, 0)
    return ordered[below], ordered[-1 - below]


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0 to 1) of them lie."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _machine() -> str:
    loads = " ".join(f"{load:.1f}" for load in os.getloadavg())
    return (
        f"Headgate {__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, {os.cpu_count()} cores, load {loads}"
    )
