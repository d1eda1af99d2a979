"""Which producers were held, and what the limiters let through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.report.grid import (
    ACCOUNT_COLUMNS,
    Grid,
    Values,
    account_span,
    instants,
    numbers,
)
from headgate.pipeline.report.totals import largest, matching, totals
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.tables.publishing import LIMITER_KEY
from headgate.pipeline.time_span import Span
from headgate.record.fields import PARK_CAUSES

_PARKED: Final = {cause: f"parked_{cause}_ns" for cause in PARK_CAUSES}


@dataclass(frozen=True, slots=True, eq=False)
class HeldTopic:
    """A topic whose producers were held."""

    cluster: str
    topic: str
    seconds: dict[str, float]
    """For each cause how long at least one send was held."""
    sentence: str
    """Of the minute in which they were held longest."""
    sentence_ns: int
    """Start of that minute."""
    held_share: float
    """Part of the range for which the cause that held longest did, 0 to 1."""
    span: Span
    """From its first account to its last, which may begin and end within a minute."""
    parked_s: dict[str, Values]
    """For each cause the seconds held in each step of the grid."""

    @property
    def longest_s(self) -> float:
        """Seconds of the cause that held longest; causes may overlap, so they do not add up."""
        return max(self.seconds.values())


@dataclass(frozen=True, slots=True, eq=False)
class Limiter:
    """A limit, and what wanted to pass."""

    cluster: str
    level: str
    subject: str
    dimension: str
    """``messages`` or ``bytes``."""
    held: int
    """What wanted to pass and did not, in its dimension."""
    waiting_share: float
    """Part of the counted time with somebody waiting, 0 to 1."""
    sentence: str
    """Of the minute in which most was held."""
    sentence_ns: int
    """Start of that minute."""
    span: Span
    """From its first account to its last, which may begin and end within a minute."""
    limit_per_s: Values
    offered_per_s: Values
    granted_per_s: Values


def held_topics(scan: TableScan, span: Span, grid: Grid, top: int) -> tuple[HeldTopic, ...]:
    """Topics of ``publish_attribution`` by how long one cause held their producers."""
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
    return tuple(_held_topic(key, matching(rows, TOPIC_KEY, key), grid) for key in keys)


def _held_topic(key: dict[str, Any], rows: pa.Table, grid: Grid) -> HeldTopic:
    minutes_ns = instants(rows["minute"])
    places = grid.places(minutes_ns)
    parked = {c: np.nan_to_num(numbers(rows[name])) / NS_PER_S for c, name in _PARKED.items()}
    worst = int(np.argmax(np.max(list(parked.values()), axis=0)))
    seconds = {cause: float(values.sum()) for cause, values in parked.items()}
    return HeldTopic(
        key["cluster"] or "",
        topic_text(key),
        seconds,
        rows["sentence"][worst].as_py() or "",
        int(minutes_ns[worst]),
        min(1.0, max(seconds.values()) / grid.known_s),
        account_span(rows),
        {cause: grid.total(places, values) for cause, values in parked.items()},
    )


def limiters(scan: TableScan, span: Span, grid: Grid, top: int) -> tuple[Limiter, ...]:
    """Limiters of ``throttle_timeline`` by how long somebody waited for them."""
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
    """The time that the rows' amounts are of; rows of older folders do not tell: all of it."""
    length_ns = pc.subtract(rows.column("to_ns"), rows.column("from_ns"))
    return pc.coalesce(rows.column("counted_ns"), length_ns)


def _with_lengths(scan: TableScan, span: Span) -> Iterator[pa.RecordBatch]:
    names = [*LIMITER_KEY, "waiting_ns"]
    for batch in scan.batches([*names, *_COUNTED], span):
        yield batch.select(names).append_column("length_ns", _counted_ns(batch))


def _limiter(key: dict[str, Any], rows: pa.Table, grid: Grid) -> Limiter:
    minutes_ns = instants(rows["minute"])
    places = grid.places(minutes_ns)
    length_s = numbers(_counted_ns(rows)) / NS_PER_S
    held = np.nan_to_num(numbers(rows["held"]))
    seconds = grid.total(places, length_s)
    # Where nothing was held, that in which they waited longest.
    worst = int(np.lexsort((np.nan_to_num(numbers(rows["waiting_ns"])), held))[-1])

    def per_s(name: str) -> Values:
        amount = grid.total(places, numbers(rows[name]))
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
        grid.mean(places, numbers(rows["limit_per_s"]), length_s),
        per_s("offered"),
        per_s("granted"),
    )
