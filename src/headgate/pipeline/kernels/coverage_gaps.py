"""Gaps in the coverage by telemetry windows, and the rows that hours beside a gap depend on.

Within two minutes of its edges an hour finds a row of every subject, because a *full window*, the
first of a boot or one in which a minute ends, has them all. Where no full window of a source
arrived for longer, there is a *coverage gap*: windows were lost, or the broker was down. Hours that
a gap touches depend on both of its ends. A gap spans 24 hours at most; nothing farther away is
looked for. Scrapes are not windows: a difference of two scrapes needs nothing beyond itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import GAP_NS_MAX, INTERVALS_LOOK_BACK_NS
from headgate.record.fields import FULL_PERIOD_NS

Longs: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

WINDOW_COLUMNS: Final = (
    "cluster", "source", "boot_id", "seq", "window_start_ns", "window_end_ns"
)  # fmt: skip
"""Columns of the rows of kind ``batch``, one for each message, that are read."""

_SOURCE: Final = ("cluster", "source")


class CoverageGap(NamedTuple):
    """Two neighbouring full windows of a source with more than two minutes and an hour's edge
    between them; if no full window lies within 24 hours, the first or last that arrived."""

    cluster: str | None
    source: str
    from_ns: int
    """End of the window before."""
    until_ns: int
    """End of the window after."""

    @property
    def hours(self) -> range:
        """Hours since the epoch that it touches."""
        return range((self.from_ns - 1) // HOUR_NS, (self.until_ns - 1) // HOUR_NS + 1)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the windows that arrived mean for the input of some hours."""

    gaps: tuple[CoverageGap, ...] = ()
    last_windows: Mapping[tuple[int, str, str], int] | None = None
    """(target hour, source, boot id) to the end of that boot's last window among the hour's
    input; None: of no boot."""

    def last_window(self, hour: int, source: str, boot_id: str) -> int:
        """End of a boot's last window among an hour's input; 0 without one."""
        return (self.last_windows or {}).get((hour, source, boot_id), 0)


def coverage(windows: pa.Table, hours: Collection[int]) -> Coverage:
    """The coverage of some hours by the windows (:data:`WINDOW_COLUMNS`) within 24 hours."""
    found = tuple(each for each in coverage_gaps(windows) if not set(each.hours).isdisjoint(hours))
    return Coverage(found, _last_windows(windows, found, hours))


def coverage_gaps(windows: pa.Table) -> list[CoverageGap]:
    """The coverage gaps between the first of some windows and the last."""
    found: list[CoverageGap] = []
    for cluster, source, ends, full in _by_source(windows):
        for from_ns, until_ns in _spans(ends, full):
            gap = CoverageGap(cluster, source, from_ns, until_ns)
            if until_ns - from_ns > INTERVALS_LOOK_BACK_NS and len(gap.hours) > 1:
                found.append(gap)
    return found


def hours_across(found: Iterable[CoverageGap], new: pa.Table) -> set[int]:
    """Hours whose input some new windows changed because they are part of a gap."""
    arrived = {(cluster, source): ends for cluster, source, ends, _ in _by_source(new)}
    none = np.empty(0, dtype=np.int64)
    return {
        hour
        for gap in found
        if _between(arrived.get((gap.cluster, gap.source), none), gap).size
        for hour in gap.hours
    }


def all_anchored(windows: pa.Table, since_ns: int, edge_ns: int) -> bool:
    """Whether every source with a window after an edge has a full one that ends between
    ``since_ns`` and the edge, so that nothing before it need be looked for."""
    return all(
        bool((full & (ends > since_ns) & (ends <= edge_ns)).any())
        for _, _, ends, full in _by_source(windows)
        if (ends > edge_ns).any()
    )


def source_codes(table: pa.Table, found: Collection[CoverageGap]) -> tuple[Longs, list[int]]:
    """A number for the source of each row, and for that of each gap; -1: of no row."""
    if not found:
        return np.zeros(table.num_rows, dtype=np.int64), []
    cluster, source = (table.column(name).combine_chunks().dictionary_encode() for name in _SOURCE)
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
    """Ends of each source's windows in order, and which of them are full."""
    names = [*_SOURCE, "window_end_ns"]
    spans = windows.filter(pc.less(windows["window_start_ns"], windows["window_end_ns"]))
    ordered = spans.sort_by([(name, "ascending") for name in names])
    ends = ordered.column("window_end_ns").to_numpy()
    starts = ordered.column("window_start_ns").to_numpy()
    is_first = ordered.column("seq").to_numpy() == 0
    full = is_first | (ends // FULL_PERIOD_NS != starts // FULL_PERIOD_NS)
    counts = ordered.group_by(list(_SOURCE), use_threads=False).aggregate([([], "count_all")])
    first = 0
    for row in counts.to_pylist():
        last = first + row["count_all"]
        yield row["cluster"], row["source"], ends[first:last], full[first:last]
        first = last


def _spans(ends: Longs, full: Flags) -> Iterator[tuple[int, int]]:
    """Neighbouring full windows; beyond 24 hours the last window after, the first before them."""
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
    """Rows, by their windows' last nanoseconds, and the hours that have them within look-back;
    each pair once."""
    shifts = (-INTERVALS_LOOK_BACK_NS, 0, INTERVALS_LOOK_BACK_NS)
    near = np.stack([(last_ns + shift) // HOUR_NS for shift in shifts], axis=1)
    wanted = np.ones(near.shape, dtype=np.bool_)
    wanted[:, 1:] = near[:, 1:] != near[:, :-1]
    row, place = np.nonzero(wanted)
    return row, near[row, place]


def rows_between(
    ends: Longs, codes: Longs, found: Iterable[tuple[CoverageGap, int]]
) -> tuple[Longs, Longs]:
    """Rows of coverage_gaps, each with its source's number, and all hours that a gap touches.

    ``ends``: of the windows of the rows; ``codes``: their sources' numbers.
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
    """From when on all rows of a source that arrived are input of an hour, for pairs of both."""
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
