"""Groups of minutes; their sentences are compared in ``test_publishing``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headgate.base.park_cause import ParkCause
from headgate.pipeline.kernels.park_sentences import NO_ROW, Spans, park_sentences
from headgate.pipeline.kernels.publishing import INPUT_COLUMNS
from tests.unit.pipeline.play import S

SPANS = Spans(
    rows=np.array([1, 2, 4, 5, 6]),
    begins=np.array([0, 2, 4]),
    before=np.array([0, 1, NO_ROW, 4, 5]),
)


def test_groups_have_first_and_last_rows() -> None:
    assert len(SPANS) == 3
    assert SPANS.first.tolist() == [1, 4, 6]
    assert SPANS.last.tolist() == [2, 5, 6]
    assert SPANS.numbers().tolist() == [0, 0, 1, 1, 2]


def test_some_groups_keep_their_rows_and_order() -> None:
    some = SPANS.take(np.array([2, 0]))
    assert some.rows.tolist() == [6, 1, 2]
    assert some.before.tolist() == [5, 0, 1]
    assert some.begins.tolist() == [0, 1]
    assert len(SPANS.take(np.array([], dtype=np.int64))) == 0


def test_groups_without_a_park_share_one_sentence() -> None:
    table = pa.table({name: pa.nulls(7, pa.int64()) for name in INPUT_COLUMNS})
    held_ns = np.zeros((len(ParkCause), 3), dtype=np.int64)
    none = np.zeros(3, dtype=np.int64)
    assert park_sentences(table, SPANS, held_ns, none, None) == ["nothing held publishing"] * 3
    held_ns[ParkCause.DISK_FULL, 1] = 3 * S
    dropped = np.array([0, 0, 7])
    said = park_sentences(table, SPANS, held_ns, dropped, np.full(3, 120.0))
    assert said[1:] == [
        "the full disk held producers for 3 s of these 2 min (2 %)",
        "nothing held publishing; deduplication dropped 7 messages that had been stored before",
    ]
