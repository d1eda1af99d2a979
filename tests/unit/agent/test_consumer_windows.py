"""The window of a consumer, from looks that never see it whole."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from headgate.agent.consumer_windows import ConsumerWindow, ConsumerWindows
from headgate.agent.looks import ConsumerLook


def _look(permits: int | None, sent: int | None = None, unacked: int | None = 0, name: str = "a",
          since: str = "monday") -> ConsumerLook:  # fmt: skip
    return ConsumerLook(name, "/10.0.0.1:1", since, permits, unacked, False, sent, 1.0)


def _seen(looks: Sequence[ConsumerLook], *, counts_unacked: bool = True) -> int:
    window = ConsumerWindow()
    for look in looks:
        window.note(look, counts_unacked=counts_unacked)
    return window.permits_max


def test_the_largest_permits_are_in_it() -> None:
    assert _seen([_look(30), _look(100), _look(-5), _look(None)], counts_unacked=False) == 100


def test_what_a_consumer_holds_is_in_it() -> None:
    """Half of a queue of 500 was never free."""
    assert _seen([_look(200, unacked=300), _look(10, unacked=390)]) == 500


def test_messages_held_back_are_not() -> None:
    """A consumer that acknowledges nothing holds more than its queue."""
    looks = [_look(50, 50 * n, unacked=50 * n) for n in range(1, 40)]
    assert _seen(looks) == 100


def test_returned_permits_show_half_a_window() -> None:
    """Lumps of 250, one to three between two looks, of a consumer whose messages nobody counts."""
    granted = [500, 750, 1_250, 1_500, 2_250]
    looks = [_look(total % 90, total - total % 90) for total in granted]
    assert _seen(looks, counts_unacked=False) == 500


@given(st.lists(st.tuples(st.integers(-100, 10_000), st.integers(0, 10**9), st.integers(0, 10**6))))
def test_it_is_never_less_than_what_was_seen(figures: list[tuple[int, int, int]]) -> None:
    looks = [_look(permits, sent, unacked) for permits, sent, unacked in figures]
    assert _seen(looks) >= max([0, *(permits for permits, _, _ in figures)])


def test_a_consumer_that_comes_again_begins_anew() -> None:
    windows = ConsumerWindows()
    first = _look(1_000)
    assert windows.note([first], counts_unacked=True)
    assert not windows.note([_look(300)], counts_unacked=True)
    assert windows.permits_max(first) == 1_000
    assert not windows.is_hungry([_look(499)])
    assert windows.is_hungry([_look(500)])
    again = _look(300, since="tuesday")
    assert windows.note([again], counts_unacked=True)
    assert windows.is_hungry([again])
    assert not windows.is_hungry([_look(None, since="tuesday")])
