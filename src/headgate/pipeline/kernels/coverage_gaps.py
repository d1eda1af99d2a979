"""Gaps in the coverage by telemetry windows.

A *full window* has a row of every subject: it is the first window of a boot, or one in which a
minute ends. So an hour normally finds a row of every subject within two minutes of its edges. If no
full window of a source arrived for longer, there is a *coverage gap*: windows were lost, or the
broker was down. The hours that a gap touches depend on the rows at both of its ends. A gap spans at
most 24 hours. Scrapes have no windows: the difference of two scrapes needs no other row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.kernels.array_types import Flags, Longs
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import GAP_NS_MAX, INTERVALS_LOOK_BACK_NS
from headgate.record.fields import FULL_PERIOD_NS

WINDOW_COLUMNS: Final = (
    "cluster", "source", "boot_id", "seq", "window_start_ns", "window_end_ns"
)  # fmt: skip
"""Columns that are read of the rows of kind ``batch``, one for each message."""

SOURCE: Final = ("cluster", "source")


class CoverageGap(NamedTuple):
    """Time between two full windows of a source that is longer than two minutes and crosses an
    hour.

    If no full window lies within 24 hours, the gap ends at the first or last window that arrived.
    """

    cluster: str | None
    source: str
    from_ns: int
    """End of the window before the gap."""
    until_ns: int
    """End of the window after the gap."""

    @property
    def hours(self) -> range:
        """Hours since the epoch that the gap touches."""
        return range((self.from_ns - 1) // HOUR_NS, (self.until_ns - 1) // HOUR_NS + 1)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage gaps and last windows that determine the input of some hours."""

    gaps: tuple[CoverageGap, ...] = ()
    last_windows: Mapping[tuple[int, str, str], int] | None = None
    """By (target hour, source, boot id): end of the boot's last window in the hour's input.

    None stands for an empty mapping.
    """

    def last_window(self, hour: int, source: str, boot_id: str) -> int:
        """End of a boot's last window in an hour's input; 0 if there is none."""
        return (self.last_windows or {}).get((hour, source, boot_id), 0)


def coverage(windows: pa.Table, hours: Collection[int]) -> Coverage:
    """The coverage of some hours by the windows within 24 hours of them
    (:data:`WINDOW_COLUMNS`)."""
    found = tuple(each for each in coverage_gaps(windows) if not set(each.hours).isdisjoint(hours))
    return Coverage(found, _last_windows(windows, found, hours))


def coverage_gaps(windows: pa.Table) -> list[CoverageGap]:
    """The coverage gaps between the first and the last of some windows."""
    found: list[CoverageGap] = []
    for cluster, source, ends, full in _by_source(windows):
        for from_ns, until_ns in _spans(ends, full):
            gap = CoverageGap(cluster, source, from_ns, until_ns)
            if until_ns - from_ns > INTERVALS_LOOK_BACK_NS and len(gap.hours) > 1:
                found.append(gap)
    return found


def hours_across(found: Iterable[CoverageGap], new: pa.Table) -> set[int]:
    """Hours whose input changed because new windows lie in one of their gaps."""
    arrived = {(cluster, source): ends for cluster, source, ends, _ in _by_source(new)}
    none = np.empty(0, dtype=np.int64)
    return {
        hour
        for gap in found
        if _between(arrived.get((gap.cluster, gap.source), none), gap).size
        for hour in gap.hours
    }


def all_anchored(windows: pa.Table, since_ns: int, edge_ns: int) -> bool:
    """Whether every source with a window after an edge has a full one between ``since_ns`` and it.

    Then no earlier window is needed.
    """
    return all(
        bool((full & (ends > since_ns) & (ends <= edge_ns)).any())
        for _, _, ends, full in _by_source(windows)
        if (ends > edge_ns).any()
    )


def source_codes(table: pa.Table, found: Collection[CoverageGap]) -> tuple[Longs, list[int]]:
    """A number for the source of each row and of each gap; -1 if no row has a gap's source."""
    if not found:
        return np.zeros(table.num_rows, dtype=np.int64), []
    cluster, source = (table.column(name).combine_chunks().dictionary_encode() for name in SOURCE)
    clusters, sources = cluster.dictionary.to_pylist(), source.dictionary.to_pylist()
    place = {
        (cluster_name, source_name): i * len(sources) + j
        for i, cluster_name in enumerate(clusters)
        for j, source_name in enumerate(sources)
    }
    rows = cluster.indices.cast(pa.int64()).fill_null(-1).to_numpy() * len(sources)
    rows = rows + source.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    return rows, [place.get((each.cluster, each.source), -1) for each in found]


def _by_source(windows: pa.Table) -> Iterator[tuple[str | None, str, Longs, Flags]]:
    """By source: the ends of its windows in order, and which windows are full."""
    names = [*SOURCE, "window_end_ns"]
    spans = windows.filter(pc.less(windows["window_start_ns"], windows["window_end_ns"]))
    ordered = spans.sort_by([(name, "ascending") for name in names])
    ends = ordered.column("window_end_ns").to_numpy()
    starts = ordered.column("window_start_ns").to_numpy()
    is_first = ordered.column("seq").to_numpy() == 0
    full = is_first | (ends // FULL_PERIOD_NS != starts // FULL_PERIOD_NS)
    counts = ordered.group_by(list(SOURCE), use_threads=False).aggregate([([], "count_all")])
    first = 0
    for row in counts.to_pylist():
        last = first + row["count_all"]
        yield row["cluster"], row["source"], ends[first:last], full[first:last]
        first = last


def _spans(ends: Longs, full: Flags) -> Iterator[tuple[int, int]]:
    """Ends of neighbouring full windows; beyond 24 hours, the nearest end of any window."""
    anchors = np.unique(ends[full])
    if not len(anchors):
        return
    if (first := ends[np.searchsorted(ends, anchors[0] - GAP_NS_MAX)]) < anchors[0]:
        yield int(first), int(anchors[0])
    for before, after in zip(anchors, [*anchors[1:], None], strict=True):
        if after is not None and after - before <= GAP_NS_MAX:
            yield int(before), int(after)
            continue
        last = ends[np.searchsorted(ends, before + GAP_NS_MAX, side="right") - 1]
        yield int(before), int(last)
        if after is not None:
            yield int(ends[np.searchsorted(ends, after - GAP_NS_MAX)]), int(after)


def _between(ends: Longs, gap: CoverageGap) -> Longs:
    first = np.searchsorted(ends, gap.from_ns)
    return ends[first : np.searchsorted(ends, gap.until_ns, side="right")]


def _last_windows(
    windows: pa.Table, found: Collection[CoverageGap], hours: Collection[int]
) -> dict[tuple[int, str, str], int]:
    ends = windows.column("window_end_ns").to_numpy()
    rows, targets = near_hours_of(ends - 1)
    codes, of_gap = source_codes(windows, found)
    more = rows_between(ends, codes, zip(found, of_gap, strict=True))
    rows, targets = np.append(rows, more[0]), np.append(targets, more[1])
    wanted = np.isin(targets, np.fromiter(hours, dtype=np.int64))
    chosen = windows.select(["source", "boot_id", "window_end_ns"]).take(pa.array(rows[wanted]))
    last = (
        chosen.append_column("target", pa.array(targets[wanted]))
        .group_by(["target", "source", "boot_id"])
        .aggregate([("window_end_ns", "max")])
    )
    columns = [last.column(name).to_pylist() for name in ("target", "source", "boot_id")]
    keys = zip(*columns, strict=True)
    return dict(zip(keys, last.column("window_end_ns_max").to_pylist(), strict=True))


def near_hours_of(last_ns: Longs) -> tuple[Longs, Longs]:
    """Pairs of a row and an hour that has it within look-back, each once.

    ``last_ns``: last nanosecond of each row's window.
    """
    shifts = (-INTERVALS_LOOK_BACK_NS, 0, INTERVALS_LOOK_BACK_NS)
    near = np.stack([(last_ns + shift) // HOUR_NS for shift in shifts], axis=1)
    wanted = np.ones(near.shape, dtype=np.bool_)
    wanted[:, 1:] = near[:, 1:] != near[:, :-1]
    row, place = np.nonzero(wanted)
    return row, near[row, place]


def rows_between(
    ends: Longs, codes: Longs, found: Iterable[tuple[CoverageGap, int]]
) -> tuple[Longs, Longs]:
    """Pairs of a row inside a gap and an hour that the gap touches.

    ``ends``: window ends of the rows. ``codes``: the numbers of their sources. ``found``: gaps with
    the numbers of theirs.
    """
    order = np.lexsort((ends, codes))
    codes, ends = codes[order], ends[order]
    rows, hours = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for gap, code in found:
        first, beyond = np.searchsorted(codes, [code, code + 1])
        inside = order[first:beyond]
        low = np.searchsorted(ends[first:beyond], gap.from_ns)
        high = np.searchsorted(ends[first:beyond], gap.until_ns, side="right")
        touched = np.array(gap.hours)
        rows.append(np.tile(inside[low:high], len(touched)))
        hours.append(np.repeat(touched, high - low))
    return np.concatenate(rows), np.concatenate(hours)


def input_starts(codes: Longs, hours: Longs, found: Iterable[tuple[CoverageGap, int]]) -> Longs:
    """Where the input of an hour begins, for pairs of a source and an hour."""
    starts = hours * HOUR_NS - INTERVALS_LOOK_BACK_NS
    earlier: dict[tuple[int, int], int] = {}
    for gap, code in found:
        for hour in gap.hours:
            earlier[code, hour] = min(gap.from_ns, earlier.get((code, hour), gap.from_ns))
    if not len(hours):
        return starts
    first, width = hours.min(), np.ptp(hours) + 1
    inside = [pair for pair in sorted(earlier) if first <= pair[1] < first + width]
    if not inside:
        return starts
    keys = np.array([code * width + hour - first for code, hour in inside], dtype=np.int64)
    from_ns = np.array([earlier[pair] for pair in inside], dtype=np.int64)
    own = codes * width + hours - first
    place = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
    return np.where(keys[place] == own, np.minimum(from_ns[place], starts), starts)
