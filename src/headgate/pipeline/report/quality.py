"""How much of the range the tables know: the page's head, and its last section."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.report.grid import Grid, Places, Values, instants, numbers
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.bronze import MEASURED
from headgate.pipeline.time_span import Span

_COUNTS: Final = ("gaps", "restarts", "resets", "clock_steps")
_REASONS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class Quality:
    """What was sampled, and what was not."""

    clusters: tuple[str, ...]
    brokers: tuple[str, ...]
    evidence: tuple[str, ...]
    """``measured``, ``inferred`` or both."""
    rows: int
    """Accounts of a subject and minute."""
    completeness: float | None
    """Covered part of the accounts' time, 0 to 1; None without any."""
    completeness_steps: Values
    """In each step of the grid; not a number without accounts."""
    gaps_steps: Values
    """Pieces with lost rows in each step."""
    counts: dict[str, int]
    """gaps, restarts, resets, clock_steps in all."""
    quarantined: int
    reasons: tuple[tuple[str, int], ...]
    """Why messages are in quarantine, the most frequent first."""


class _Sums:
    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.covered, self.length, self.gaps = (np.zeros(grid.count) for _ in range(3))
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.names: dict[str, set[str]] = {"cluster": set(), "broker": set(), "evidence": set()}
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        places: Places = self.grid.places(instants(batch.column("minute")))
        length = numbers(batch.column("to_ns")) - numbers(batch.column("from_ns"))
        self.length += self.grid.total(places, length)
        self.covered += self.grid.total(places, numbers(batch.column("covered_ns")))
        self.gaps += self.grid.total(places, numbers(batch.column("gaps")))
        for name in _COUNTS:
            self.counts[name] += pc.sum(batch.column(name)).as_py() or 0
        for name, found in self.names.items():
            found.update(value for value in pc.unique(batch.column(name)).to_pylist() if value)
        self.rows += batch.num_rows


def quality(intervals: TableScan, quarantine: TableScan | None, span: Span, grid: Grid) -> Quality:
    """Ask ``intervals`` and ``bronze_quarantine``."""
    sums = _Sums(grid)
    columns = ("minute", "from_ns", "to_ns", "covered_ns", *_COUNTS, *sums.names)
    for batch in intervals.batches(columns, span):
        sums.add(batch)
    length, covered = float(sums.length.sum()), float(sums.covered.sum())
    steps = np.divide(
        sums.covered, sums.length, out=np.full(grid.count, np.nan), where=sums.length > 0
    )
    reasons = _reasons(quarantine, span)
    # Folders of before the column existed were measured.
    evidence = tuple(sorted(sums.names["evidence"])) or (MEASURED,)
    return Quality(
        tuple(sorted(sums.names["cluster"])),
        tuple(sorted(sums.names["broker"])),
        evidence,
        sums.rows,
        min(1.0, covered / length) if length > 0 else None,
        np.minimum(steps, 1.0),
        sums.gaps,
        sums.counts,
        sum(reasons.values()),
        tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:_REASONS_SHOWN]),
    )


def _reasons(quarantine: TableScan | None, span: Span) -> dict[str, int]:
    found: dict[str, int] = {}
    if quarantine is not None:
        for batch in quarantine.batches(("reason",), span):
            counted: list[dict[str, Any]] = pc.value_counts(batch.column("reason")).to_pylist()
            for pair in counted:
                found[pair["values"] or ""] = found.get(pair["values"] or "", 0) + pair["counts"]
    return found
