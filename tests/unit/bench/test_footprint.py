"""What a limiter takes is measured where it is claimed: idle for whatever reason, and busy."""

from __future__ import annotations

import pytest

from bench.footprint import busy, heap_bytes, idle, idle_again, object_bytes
from headgate.base.units import NS_PER_S


@pytest.mark.parametrize("charges", [1, 2, 15, 16, 1_000])
def test_a_limiter_with_an_empty_window_is_small_whatever_it_was_used_for(charges: int) -> None:
    assert object_bytes(idle()) < 500
    assert object_bytes(idle_again(charges)) < 500


@pytest.mark.parametrize("entry", [1, 10**9])
@pytest.mark.parametrize("period_ns", [NS_PER_S, 60 * NS_PER_S])
def test_a_busy_limiter_is_bounded(entry: int, period_ns: int) -> None:
    assert object_bytes(busy(entry, 7_000, period_ns)) < 4_096


def test_the_heap_holds_the_numbers_too() -> None:
    assert heap_bytes(idle) > object_bytes(idle())
