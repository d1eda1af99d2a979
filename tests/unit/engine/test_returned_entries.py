"""What a consumer gave back at once keeps its order, and how much of each entry is acknowledged."""

from __future__ import annotations

from headgate.engine.consumer import Consumer
from headgate.engine.returned_entries import ReturnedEntries
from tests.unit.engine.harness import FakePort


def test_it_keeps_the_order_and_takes_more() -> None:
    holder = Consumer(1, "c", FakePort())
    holder.held = {5: 0, 3: 2}
    returned = ReturnedEntries(holder, counted=True)
    holder.held = {}
    returned.extend({9: 1})
    assert list(returned.ordinals) == [5, 3, 9]
    assert returned.held == {5: 0, 3: 2, 9: 1}
    assert (returned.holder, returned.counted) == (holder, True)
