"""Coverage of some hours by telemetry windows, read from the rows of kind ``batch`` in bronze.

These rows are few, one for each message, so the driver reads them, and only those that it needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import pyarrow as pa

from headgate.pipeline.kernels.coverage_gaps import WINDOW_COLUMNS, all_anchored
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import GAP_NS_MAX, INTERVALS_LOOK_BACK_NS

GAP_HOURS_MAX: Final = GAP_NS_MAX // HOUR_NS
"""How many hours before and after its own an hour of ``intervals`` may depend on."""

_SCHEMA: Final = pa.schema([table_arrow_schema(BRONZE_SAMPLES).field(n) for n in WINDOW_COLUMNS])


def windows_around(root: str, files: Collection[TableFile], hours: Collection[int]) -> pa.Table:
    """The windows of some hours, and around them as far as a gap may reach.

    ``files``: of ``bronze_samples``, any kinds. Columns: ``WINDOW_COLUMNS``. The function reads all
    windows of the 24 hours after the hours; there are none while telemetry arrives in order. Before
    the hours it reads two minutes, and more only if a source lacks a full window there.
    """
    batches = batches_of(files)
    read: dict[str, pa.Table] = {}
    for first, last in _runs(hours):
        edge_ns = first * HOUR_NS
        until_ns = (last + 1 + GAP_HOURS_MAX) * HOUR_NS
        starts_ns = [edge_ns - INTERVALS_LOOK_BACK_NS]
        starts_ns += [edge_ns - back * HOUR_NS for back in range(1, GAP_HOURS_MAX + 1)]
        for since_ns in starts_ns:
            wanted = [file for file in batches if _overlaps(file, since_ns, until_ns)]
            read |= _windows(root, [file for file in wanted if file.path not in read])
            if all_anchored(_concatenated(read[file.path] for file in wanted), since_ns, edge_ns):
                break
    return _concatenated(read.values())


def windows_of(root: str, files: Collection[TableFile]) -> pa.Table:
    """The windows of some files of ``bronze_samples``, any kinds. Columns: ``WINDOW_COLUMNS``."""
    return _concatenated(_windows(root, batches_of(files)).values())


def batches_of(files: Iterable[TableFile]) -> list[TableFile]:
    """Those files of ``bronze_samples`` that have one row for each message."""
    return [file for file in files if file.partition["kind"] == BATCH_KIND]


def _runs(hours: Collection[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of hours without a hole."""
    first = last = None
    for hour in sorted(hours):
        if first is None or last is None:
            first = last = hour
        elif hour == last + 1:
            last = hour
        else:
            yield first, last
            first = last = hour
    if first is not None and last is not None:
        yield first, last


def _overlaps(file: TableFile, since_ns: int, until_ns: int) -> bool:
    first, last = file.span_ns
    return first < until_ns and last >= since_ns


def _windows(root: str, files: Collection[TableFile]) -> dict[str, pa.Table]:
    paths = [file.path for file in files]
    rows = store_of(root).columns(BRONZE_SAMPLES.name, paths, WINDOW_COLUMNS)
    return {path: found.cast(_SCHEMA) for path, found in zip(paths, rows, strict=True)}


def _concatenated(tables: Collection[pa.Table] | Iterator[pa.Table]) -> pa.Table:
    return pa.concat_tables([_SCHEMA.empty_table(), *tables])
