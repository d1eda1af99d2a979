"""Ranges of minutes by hour."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.touched_minutes import WHOLE_HOUR, TouchedMinutes

SPANS = st.tuples(st.integers(0, 300), st.integers(0, 150))


def between(first: int, more: int) -> TouchedMinutes:
    return TouchedMinutes.between(first * MINUTE_NS, (first + more + 1) * MINUTE_NS - 1)


def numbers(touched: TouchedMinutes) -> set[int]:
    return {hour * 60 + minute for hour, minutes in touched.items() for minute in minutes}


def test_minutes_between_two_instants() -> None:
    touched = TouchedMinutes.between(58 * MINUTE_NS + 1, 121 * MINUTE_NS)
    assert dict(touched) == {0: range(58, 60), 1: WHOLE_HOUR, 2: range(2)}
    assert touched.partial == {0, 2}
    assert touched.whole_hours() == TouchedMinutes.whole([0, 1, 2])
    assert dict(touched.only({0, 7})) == {0: range(58, 60)}
    assert TouchedMinutes({3: range(0)}) == TouchedMinutes()


@given(SPANS, SPANS, st.integers(0, 70), st.integers(0, 70))
def test_sums_and_wider_ranges_hold_what_they_should(
    one: tuple[int, int], other: tuple[int, int], before: int, after: int
) -> None:
    first, second = between(*one), between(*other)
    both = first | second
    assert numbers(both) >= numbers(first) | numbers(second)
    assert set(both) == {*first, *second}
    first_minute, last_minute = one[0] - before, sum(one) + after
    assert numbers(first.widened(before, after)) == {*range(first_minute, last_minute + 1)}
    assert numbers(first.aligned(5)) == {
        minute for minute in range(600) if minute // 5 in {n // 5 for n in numbers(first)}
    }
    assert TouchedMinutes.from_json(both.to_json()) == both


@given(SPANS, st.integers(0, 500), st.integers(0, 90))
def test_a_file_overlaps_or_lies_within(span: tuple[int, int], first: int, more: int) -> None:
    touched, minutes = between(*span), {*range(first, first + more + 1)}
    ends_ns = first * MINUTE_NS + 5, (first + more) * MINUTE_NS + 7
    assert touched.overlaps(*ends_ns) == bool(minutes & numbers(touched))
    assert touched.contains(*ends_ns) == (minutes <= numbers(touched))


def test_only_minutes_of_a_trigger_get_files_of_their_own() -> None:
    present = TouchedMinutes({7: range(3, 9)})
    edge = TouchedMinutes({7: range(55, 60), 8: range(2)})
    assert present.minute_files == {7}
    assert edge.minute_files == {7, 8}
    assert (edge | TouchedMinutes.whole([8])).minute_files == {7}
    assert (edge | TouchedMinutes({9: range(5)})).minute_files == frozenset()
