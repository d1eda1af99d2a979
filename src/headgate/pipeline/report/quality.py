"""The coverage of the range by telemetry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.flow.account.verdict import MEASURED
from headgate.pipeline.kernels.array_types import Doubles, Longs
from headgate.pipeline.report.grid import Grid, instants, numbers
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.time_span import Span

_COUNTS: Final = ("gaps", "restarts", "resets", "clock_steps")
_REASONS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class Quality:
    """Coverage of a range by telemetry."""

    clusters: tuple[str, ...]
    brokers: tuple[str, ...]
    evidence: tuple[str, ...]
    """``measured``, ``inferred`` or both."""
    rows: int
    """Accounts, one for each subject and minute."""
    completeness: float | None
    """Covered share of the accounts' time, 0 to 1; None without accounts."""
    completeness_steps: Doubles
    """In each step of the grid; NaN without accounts."""
    gaps_steps: Doubles
    """Gaps in each step."""
    counts: dict[str, int]
    """Totals of gaps, restarts, resets and clock_steps."""
    quarantined: int
    reasons: tuple[tuple[str, int], ...]
    """Quarantined messages by reason, the most frequent first."""


class _Sums:
    """Sums over batches of ``intervals``."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.covered, self.length, self.gaps = (np.zeros(grid.count) for _ in range(3))
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.names: dict[str, set[str]] = {"cluster": set(), "broker": set(), "evidence": set()}
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        steps: Longs = self.grid.step_indexes(instants(batch.column("minute")))
        length = numbers(batch.column("to_ns")) - numbers(batch.column("from_ns"))
        self.length += self.grid.total(steps, length)
        self.covered += self.grid.total(steps, numbers(batch.column("covered_ns")))
        self.gaps += self.grid.total(steps, numbers(batch.column("gaps")))
        for name in _COUNTS:
            self.counts[name] += pc.sum(batch.column(name)).as_py() or 0
        for name, found in self.names.items():
            found.update(value for value in pc.unique(batch.column(name)).to_pylist() if value)
        self.rows += batch.num_rows


def quality(intervals: TableScan, quarantine: TableScan | None, span: Span, grid: Grid) -> Quality:
    """Read ``intervals`` and ``bronze_quarantine``."""
    sums = _Sums(grid)
    columns = ("minute", "from_ns", "to_ns", "covered_ns", *_COUNTS, *sums.names)
    for batch in intervals.batches(columns, span):
        sums.add(batch)
    length, covered = float(sums.length.sum()), float(sums.covered.sum())
    steps = np.divide(
        sums.covered, sums.length, out=np.full(grid.count, np.nan), where=sums.length > 0
    )
    reasons = _reasons(quarantine, span)
    # Folders older than the column hold measured telemetry only.
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
