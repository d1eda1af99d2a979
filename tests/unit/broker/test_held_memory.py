"""What a connection holds, in numbers and words."""

from __future__ import annotations

from headgate.base.units import MIB
from headgate.broker.held_memory import HeldMemory, share_text


def test_totals_and_texts() -> None:
    held = HeldMemory(connections=100, received=20, pending=3_000)
    assert held.total == 3_120
    assert held.beyond_idle == 3_020
    assert held.described() == "connections 100, received 20, pending 3,000"
    assert HeldMemory().described() == ""
    assert share_text(3 * MIB // 2, 8 * MIB) == "1.5 MiB of the 8.0 MiB that they may hold"


def test_acknowledgements_free_most_of_it() -> None:
    assert HeldMemory(connections=100, received=10, pending=11).is_mostly_pending
    assert not HeldMemory(received=10, pending=10).is_mostly_pending
    assert not HeldMemory(connections=100).is_mostly_pending
