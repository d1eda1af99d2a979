"""Accounts of many subscription windows as arrays, the input of the verdict law.

A window is a minute or a range of minutes. A range has the sums of its minutes' amounts and
seconds, and the levels at its two ends. So its verdict follows from the sums, never from other
verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S
from headgate.flow.account.verdict import INFERRED, MEASURED
from headgate.flow.limits.rate_limit import Level
from headgate.pipeline.kernels.array_types import Codes, Doubles, Flags, Longs
from headgate.pipeline.kernels.verdict_arrays import (
    NO_CODE,
    VERDICTS,
    EvidenceArrays,
    JudgementArrays,
)
from headgate.pipeline.tables.attribution import BLAMES
from headgate.record.fields import STATE_FIELD_NAMES

GAINS: Final = ("appended", "rewound")
LOSSES: Final = ("acked", "skipped", "expired", "evicted")
SUMMED: Final = (*GAINS, *LOSSES, "msgs_out", "bytes_out", "covered_ns")
"""Columns of ``intervals`` that a window sums, besides those of the account."""

LIMIT_PARTS: Final = ("messages", "bytes", "period_ns")
LIMIT_COLUMNS: Final = tuple(
    f"limit_{level.name.lower()}_{part}" for level in Level for part in (*LIMIT_PARTS, "source")
)

_DIMENSIONS: Final = pa.array(["messages", "bytes"])
_VERDICT_NAMES: Final = pa.array([verdict.value for verdict in VERDICTS])
_CODES: Final = {verdict.value: code for code, verdict in enumerate(VERDICTS)}


@dataclass(frozen=True, slots=True)
class LimitArrays:
    """The limits of n windows by level, [Level, n] each: amounts for a period, 0 if there is
    none."""

    messages: Longs
    bytes: Longs
    period_ns: Longs

    def per_s(self) -> Doubles:
        """The limits as rates, [Level, Dimension, n]; NaN if there is none."""
        amounts = np.stack([self.messages, self.bytes], axis=1).astype(np.float64)
        rates = amounts * NS_PER_S / self.period_ns[:, np.newaxis]
        return np.where(amounts > 0, rates, np.nan)


@dataclass(frozen=True, slots=True)
class AccountWindows:
    """Accounts of n windows.

    ``sums`` has :data:`SUMMED`. ``cells_ns`` is [cell, n]. ``limits`` are those that throttled.
    ``demonstrated_per_s`` is NaN if no rate was demonstrated. ``votes``: see
    :class:`EvidenceArrays`.
    """

    from_ns: Longs
    to_ns: Longs
    sums: Mapping[str, Longs]
    cells_ns: Longs
    backlog_start: Longs
    """Messages that are not acknowledged, delayed ones included."""
    backlog_end: Longs
    delayed_start: Longs
    """Delayed messages of these that are not due; 0 if it is not known."""
    delayed_end: Longs
    unacked_start: Longs
    unacked_end: Longs
    oldest_age_max_ns: Longs
    limits: LimitArrays
    demonstrated_per_s: Doubles
    is_inferred: Flags
    votes: Longs | None = None

    def accounted_ns(self) -> Longs:
        """The accounted time of each window, at least 1."""
        return np.maximum(1, accounted_ns(self.cells_ns, self.sums["covered_ns"]))

    def completeness(self) -> Doubles:
        """The share of each window that rows cover, 0 to 1."""
        return np.minimum(1.0, self.sums["covered_ns"] / (self.to_ns - self.from_ns))

    def deliverable_start(self) -> Longs:
        """The backlog at the start without what is not due."""
        return self.backlog_start - self.delayed_start

    def deliverable_end(self) -> Longs:
        """The backlog at the end without what is not due."""
        return self.backlog_end - self.delayed_end

    def arrived(self) -> Longs:
        """Messages that may be delivered since: published ones, and delayed ones when due."""
        held = self.delayed_end - self.delayed_start
        return np.asarray(np.maximum(0, self.sums["appended"] - held), dtype=np.int64)

    def residual(self) -> Longs:
        """Growth that the counted amounts do not explain, in messages."""
        net = sum(self.sums[name] for name in GAINS) - sum(self.sums[name] for name in LOSSES)
        return np.asarray(self.backlog_end - self.backlog_start - net, dtype=np.int64)

    def evidence(self) -> EvidenceArrays:
        """The input of the verdict law; unexplained growth reduces its completeness.

        A delayed message is no backlog until it is due, and arrives when it is. All other counts
        include it, so what is unexplained follows from the whole backlog.

        Inferred amounts are the exception: they were derived from the growth. They also differ from
        it if messages come in batches, because a backlog counts a batch as one.
        """
        moved = np.maximum(
            np.maximum(1, np.abs(self.backlog_end - self.backlog_start)),
            sum(self.sums[name] for name in (*GAINS, *LOSSES)),
        )
        unexplained = np.minimum(1.0, np.abs(self.residual()) / moved)
        unexplained = np.where(self.is_inferred, 0.0, unexplained)
        return EvidenceArrays(
            window_ns=self.accounted_ns(),
            cells_ns=self.cells_ns,
            backlog_start=self.deliverable_start(),
            backlog_end=self.deliverable_end(),
            oldest_age_ns_max=self.oldest_age_max_ns,
            appended=self.arrived(),
            delivered=self.sums["msgs_out"],
            acked=self.sums["acked"],
            unacked_start=self.unacked_start,
            unacked_end=self.unacked_end,
            evicted=self.sums["evicted"] + self.sums["expired"],
            delivered_bytes=self.sums["bytes_out"],
            limits_per_s=self.limits.per_s(),
            demonstrated_ack_per_s=self.demonstrated_per_s,
            completeness=self.completeness() * (1.0 - unexplained),
            is_inferred=self.is_inferred,
            votes=self.votes,
        )


def longs(table: pa.Table, name: str) -> Longs:
    """A column of whole numbers; null is 0."""
    column = table.column(name)
    if column.null_count:
        column = pc.fill_null(column, 0)
    return np.asarray(column.to_numpy(), dtype=np.int64)


def cells_of(table: pa.Table) -> Longs:
    """The account's columns, [cell, n]."""
    cells = np.empty((len(STATE_FIELD_NAMES), table.num_rows), np.int64)
    for place, name in enumerate(STATE_FIELD_NAMES):
        cells[place] = longs(table, name)
    return cells


def accounted_ns(cells_ns: Longs, covered_ns: Longs) -> Longs:
    """The time over which the amounts of a window were counted, as the base of rates.

    It is the sum of the account. Amounts and account include the time of lost rows, ``covered_ns``
    does not. ``covered_ns`` counts only if there is no account.
    """
    total_ns = cells_ns.sum(axis=0)
    return np.asarray(np.where(total_ns > 0, total_ns, covered_ns), dtype=np.int64)


def limits_of(table: pa.Table, prefix: str = "limit") -> LimitArrays:
    """The limits in columns named ``<prefix>_<level>_<part>``; the default period is a second."""
    amounts = {
        part: np.stack([longs(table, f"{prefix}_{level.name.lower()}_{part}") for level in Level])
        for part in LIMIT_PARTS
    }
    amounts["period_ns"][amounts["period_ns"] <= 0] = NS_PER_S
    return LimitArrays(**amounts)


def inferred_rows(table: pa.Table) -> Flags:
    """Which rows were inferred from counters; null, from folders of earlier versions, is
    measured."""
    column = pc.fill_null(pc.equal(table.column("evidence"), INFERRED), False)
    return np.asarray(column.to_numpy(), dtype=np.bool_)


def demonstrated_of(table: pa.Table) -> Doubles:
    """The column ``proven_rate_per_s``; null is NaN."""
    column = table.column("proven_rate_per_s")
    if column.null_count:
        column = pc.fill_null(column, np.nan)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def not_due(table: pa.Table, name: str, backlog: Longs) -> Longs:
    """A column of delayed messages that are not due, at most ``backlog``: the counters of another
    cluster, which are read one after the other, may say more."""
    return np.asarray(np.clip(longs(table, name), 0, np.maximum(backlog, 0)), dtype=np.int64)


def minute_windows(table: pa.Table) -> AccountWindows:
    """Every row of ``intervals`` as a window of its own."""
    start, end = longs(table, "backlog_messages_start"), longs(table, "backlog_messages")
    return AccountWindows(
        from_ns=longs(table, "from_ns"),
        to_ns=longs(table, "to_ns"),
        sums={name: longs(table, name) for name in SUMMED},
        cells_ns=cells_of(table),
        backlog_start=start,
        backlog_end=end,
        delayed_start=not_due(table, "delayed_start", start),
        delayed_end=not_due(table, "delayed", end),
        unacked_start=longs(table, "unacked_start"),
        unacked_end=longs(table, "unacked"),
        oldest_age_max_ns=longs(table, "oldest_age_max_ns"),
        limits=limits_of(table),
        demonstrated_per_s=demonstrated_of(table),
        is_inferred=inferred_rows(table),
    )


def judgement_columns(windows: AccountWindows, judged: JudgementArrays) -> dict[str, pa.Array]:
    """The columns ``tables.attribution.JUDGEMENT_COLUMNS`` without the sentence."""
    shares = {f"share_{blame.lower()}": pa.array(judged.shares[_CODES[blame]]) for blame in BLAMES}
    demonstrated = windows.demonstrated_per_s
    grown = judged.would_have_grown
    return {
        "growth_messages": pa.array(judged.growth),
        "backlog_messages": pa.array(windows.deliverable_end()),
        "delayed_messages": pa.array(windows.delayed_end),
        "residual_messages": pa.array(windows.residual(), mask=windows.is_inferred),
        "appended": pa.array(windows.sums["appended"]),
        "acked": pa.array(windows.sums["acked"]),
        "evicted": pa.array(windows.sums["evicted"]),
        "expired": pa.array(windows.sums["expired"]),
        "from_ns": pa.array(windows.from_ns),
        "to_ns": pa.array(windows.to_ns),
        "oldest_age_max_ns": pa.array(windows.oldest_age_max_ns),
        **shares,
        "verdict": _names(_VERDICT_NAMES, judged.verdict),
        "second": _names(_VERDICT_NAMES, judged.second),
        "bystander": pa.array(judged.bystander),
        "dimension": _names(_DIMENSIONS, judged.dimension),
        "proven_rate_per_s": pa.array(demonstrated, mask=np.isnan(demonstrated)),
        "grows_without_limit": pa.array(grown == 1, mask=grown == NO_CODE),
        "confidence": pa.array(judged.confidence),
        "completeness": pa.array(windows.completeness()),
        "accounted_ns": pa.array(windows.accounted_ns()),
        "evidence": _names(pa.array([MEASURED, INFERRED]), windows.is_inferred.astype(np.int8)),
    }


def _names(names: pa.Array, codes: Codes) -> pa.Array:
    indices: Any = pa.array(codes, mask=codes == NO_CODE)
    return pa.DictionaryArray.from_arrays(indices, names).cast(pa.string())
