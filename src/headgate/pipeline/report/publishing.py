"""The effect of limits on producers and consumers over a range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels.array_types import Doubles
from headgate.pipeline.kernels.totals import totals
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.report.grid import ACCOUNT_COLUMNS, Grid, account_span, instants, numbers
from headgate.pipeline.report.row_selection import largest, matching
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.tables.publishing import LIMITER_KEY
from headgate.pipeline.time_span import Span
from headgate.record.fields import PARK_CAUSES

_PARKED: Final = {cause: f"parked_{cause}_ns" for cause in PARK_CAUSES}


@dataclass(frozen=True, slots=True, eq=False)
class ParkedTopic:
    """A topic whose sends were parked."""

    cluster: str
    topic: str
    seconds: dict[str, float]
    """By park cause: seconds in which at least one send was parked."""
    sentence: str
    """The sentence of the minute in which they were parked longest."""
    sentence_ns: int
    """Start of that minute."""
    held_share: float
    """Share of the range for the longest cause, 0 to 1."""
    span: Span
    """From the begin of its first account to the end of its last; both may lie within a minute."""
    parked_s: dict[str, Doubles]
    """By park cause: seconds in each step of the grid."""

    @property
    def longest_s(self) -> float:
        """Seconds of the longest cause; causes may overlap, so their sum means nothing."""
        return max(self.seconds.values())


@dataclass(frozen=True, slots=True, eq=False)
class Limiter:
    """A limit and its traffic."""

    cluster: str
    level: str
    subject: str
    dimension: str
    """``messages`` or ``bytes``."""
    held: int
    """Amount that the limit held back, in its dimension."""
    waiting_share: float
    """Share of the counted time in which a subscription or producer waited, 0 to 1."""
    sentence: str
    """The sentence of the minute in which the limit held back most."""
    sentence_ns: int
    """Start of that minute."""
    span: Span
    """From the begin of its first account to the end of its last; both may lie within a minute."""
    limit_per_s: Doubles
    offered_per_s: Doubles
    granted_per_s: Doubles


def parked_topics(scan: TableScan, span: Span, grid: Grid, top: int) -> tuple[ParkedTopic, ...]:
    """The ``top`` topics of ``publish_attribution`` by the seconds of their longest cause."""
    columns = [*TOPIC_KEY, *_PARKED.values()]
    found = totals(
        scan.batches(columns, span), TOPIC_KEY, [(name, "sum") for name in _PARKED.values()]
    )
    if found is None:
        return ()
    longest = np.max([np.nan_to_num(numbers(found[f"{n}_sum"])) for n in _PARKED.values()], axis=0)
    keys = largest(found, longest, top)
    if not keys:
        return ()
    rows = scan.rows(
        [*columns, "minute", *ACCOUNT_COLUMNS, "sentence"],
        span,
        ("topic", sorted({k["topic"] for k in keys})),
    )
    return tuple(_parked_topic(key, matching(rows, TOPIC_KEY, key), grid) for key in keys)


def _parked_topic(key: dict[str, Any], rows: pa.Table, grid: Grid) -> ParkedTopic:
    minutes_ns = instants(rows["minute"])
    steps = grid.step_indexes(minutes_ns)
    parked = {c: np.nan_to_num(numbers(rows[name])) / NS_PER_S for c, name in _PARKED.items()}
    worst = int(np.argmax(np.max(list(parked.values()), axis=0)))
    seconds = {cause: float(values.sum()) for cause, values in parked.items()}
    return ParkedTopic(
        key["cluster"] or "",
        topic_text(key),
        seconds,
        rows["sentence"][worst].as_py() or "",
        int(minutes_ns[worst]),
        min(1.0, max(seconds.values()) / grid.known_s),
        account_span(rows),
        {cause: grid.total(steps, values) for cause, values in parked.items()},
    )


def limiters(scan: TableScan, span: Span, grid: Grid, top: int) -> tuple[Limiter, ...]:
    """The ``top`` limiters of ``throttle_timeline`` by the time in which there was a waiter."""
    found = totals(
        _with_lengths(scan, span),
        LIMITER_KEY,
        [("waiting_ns", "sum"), ("length_ns", "sum")],
    )
    if found is None:
        return ()
    keys = largest(found, np.nan_to_num(numbers(found["waiting_ns_sum"])), top)
    if not keys:
        return ()
    rows = scan.rows(
        [
            *LIMITER_KEY, "minute", *_COUNTED, "limit_per_s", "offered", "granted", "held",
            "waiting_ns", "sentence",
        ],
        span,
        ("subject", sorted({key["subject"] for key in keys})),
    )  # fmt: skip
    return tuple(_limiter(key, matching(rows, LIMITER_KEY, key), grid) for key in keys)


_COUNTED: Final = ("counted_ns", *ACCOUNT_COLUMNS)


def _counted_ns(rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """The time to which the amounts of a row belong; the whole account in rows of older folders,
    which lack ``counted_ns``."""
    length_ns = pc.subtract(rows.column("to_ns"), rows.column("from_ns"))
    return pc.coalesce(rows.column("counted_ns"), length_ns)


def _with_lengths(scan: TableScan, span: Span) -> Iterator[pa.RecordBatch]:
    names = [*LIMITER_KEY, "waiting_ns"]
    for batch in scan.batches([*names, *_COUNTED], span):
        yield batch.select(names).append_column("length_ns", _counted_ns(batch))


def _limiter(key: dict[str, Any], rows: pa.Table, grid: Grid) -> Limiter:
    minutes_ns = instants(rows["minute"])
    steps = grid.step_indexes(minutes_ns)
    length_s = numbers(_counted_ns(rows)) / NS_PER_S
    held = np.nan_to_num(numbers(rows["held"]))
    seconds = grid.total(steps, length_s)
    # If the limit held nothing back, the minute with the longest wait.
    worst = int(np.lexsort((np.nan_to_num(numbers(rows["waiting_ns"])), held))[-1])

    def per_s(name: str) -> Doubles:
        amount = grid.total(steps, numbers(rows[name]))
        return np.divide(amount, seconds, out=np.full(grid.count, np.nan), where=seconds > 0)

    return Limiter(
        key["cluster"] or "",
        key["level"],
        key["subject"],
        key["dimension"],
        int(held.sum()),
        min(1.0, key["waiting_ns_sum"] / max(1, key["length_ns_sum"])),
        rows["sentence"][worst].as_py() or "",
        int(minutes_ns[worst]),
        account_span(rows),
        grid.mean(steps, numbers(rows["limit_per_s"]), length_s),
        per_s("offered"),
        per_s("granted"),
    )
