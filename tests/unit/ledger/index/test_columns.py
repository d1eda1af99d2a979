"""Columns know the totals before their range."""

from __future__ import annotations

from array import array

from headgate.ledger.index.columns import Columns, TopicTotals


def test_the_totals_before_a_range_are_the_first_elements() -> None:
    columns = Columns(
        offsets=array("I", (64,)),
        received=array("q", (1_000, 2_000)),
        publish_lags=array("I", (10, 20)),
        messages=array("q", (3, 4)),
        sizes=array("q", (500, 600)),
    )
    assert columns.totals_before() == TopicTotals(3, 500, 1_000, 10)
