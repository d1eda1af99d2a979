"""Whether telemetry windows follow each other so closely that minutes can be computed alone.

A minute of ``intervals`` follows from the rows within two minutes of it, if every subject has a row
before and one after it there. That holds while the full windows of each source come without a hole
and no broker starts. Elsewhere the whole hour is computed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.kernels.array_types import Longs
from headgate.pipeline.kernels.coverage_gaps import SOURCE
from headgate.pipeline.tables.arrow_types import changes
from headgate.pipeline.tables.intervals import INTERVALS_LOOK_BACK_NS
from headgate.record.fields import FULL_PERIOD_NS


def is_steady(windows: pa.Table, since_ns: int, until_ns: int) -> bool:
    """Whether all windows that end in ``(since_ns, until_ns]`` follow one of the same boot, in
    order, and no source lacks full windows there for longer than two minutes.

    ``windows``: ``coverage_gaps.WINDOW_COLUMNS``, from before the time to after it.
    """
    order = [(name, "ascending") for name in (*SOURCE, "window_end_ns", "boot_id", "seq")]
    table = windows.sort_by(order)
    starts, ends, seq = (_longs(table, n) for n in ("window_start_ns", "window_end_ns", "seq"))
    boot_changes, source_changes = changes(table, (*SOURCE, "boot_id")), changes(table, SOURCE)
    # A message may have arrived twice.
    again = ~boot_changes
    again[1:] &= (seq[1:] == seq[:-1]) & (ends[1:] == ends[:-1])
    inside = (ends > since_ns) & (ends <= until_ns) & ~again
    backward = np.zeros(len(ends), dtype=np.bool_)
    # A window with many subjects is several messages.
    another = (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
    backward[1:] = (another & (starts[1:] < ends[:-1])) | (seq[1:] <= seq[:-1])
    odd = (starts >= ends) | (ends - starts > FULL_PERIOD_NS) | boot_changes | backward
    if bool((odd & inside).any()):
        return False
    full = (seq == 0) | (ends // FULL_PERIOD_NS != starts // FULL_PERIOD_NS)
    source = np.cumsum(source_changes)[full]
    anchors = ends[full]
    same = source[1:] == source[:-1]
    hole = same & (anchors[1:] - anchors[:-1] > INTERVALS_LOOK_BACK_NS)
    return not bool((hole & (anchors[:-1] < until_ns) & (anchors[1:] > since_ns)).any())


def _longs(table: pa.Table, name: str) -> Longs:
    return np.asarray(pc.fill_null(table.column(name), 0).to_numpy(), dtype=np.int64)
