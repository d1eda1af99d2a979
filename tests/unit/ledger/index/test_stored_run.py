"""Where the blocks of a stored run are."""

from __future__ import annotations

from array import array

import pytest

from headgate.ledger.index.columns import Columns, TopicTotals
from headgate.ledger.index.index_block import block_bytes
from headgate.ledger.index.stored_run import StoredRun

NOTHING = Columns(*(array(code) for code in "IqIqq"))


@pytest.mark.parametrize(("count", "counts"), [(1, [1]), (8, [4, 4]), (9, [4, 4, 1])])
def test_blocks(count: int, counts: list[int]) -> None:
    run = StoredRun(3, 100, count, 7, 5_000, NOTHING, 0, TopicTotals(0, 0, 0, 0), 4)
    assert run.stop == 100 + count
    assert run.blocks == len(counts)
    assert [run.count_of(block) for block in range(run.blocks)] == counts
    assert [run.first_of(block) for block in range(run.blocks)] == [100, 104, 108][: len(counts)]
    assert run.place_of(run.blocks - 1) == 5_000 + (run.blocks - 1) * block_bytes(4)


def test_totals_before_a_block_are_in_its_row_and_those_behind_the_last_in_the_run() -> None:
    columns = Columns(
        array("I", [64, 64, 900]),
        array("q", [0, 1_000, 2_000]),
        array("I", [0, 7, 8]),
        array("q", [0, 10, 20]),
        array("q", [0, 100, 200]),
    )
    after = TopicTotals(25, 250, 3_000, 9)
    run = StoredRun(3, 100, 6, 7, 5_000, columns, 1, after, 4)
    assert run.totals_before(0) == TopicTotals(10, 100, 1_000, 7)
    assert run.totals_before(1) == TopicTotals(20, 200, 2_000, 8)
    assert run.totals_before(2) == after


def test_a_run_alone_has_its_own_rows() -> None:
    columns = Columns(*(array(code, range(1_000)) for code in "IqIqq"))
    run = StoredRun(3, 100, 6, 7, 5_000, columns, 500, TopicTotals(25, 250, 3_000, 9), 4)
    alone = run.alone()
    assert [alone.totals_before(block) for block in range(3)] == [
        run.totals_before(block) for block in range(3)
    ]
    assert (alone.row, [len(column) for column in alone.sparse]) == (0, [2] * 5)
    assert alone.stop == run.stop
