"""What an owner stores."""

from __future__ import annotations

from headgate.base.stored_total import STORED_BYTES_MAX, StoredTotal


def test_without_a_limit_everything_has_room() -> None:
    total = StoredTotal(44)
    assert not total.is_limited
    assert total.bytes_max == total.body_end == STORED_BYTES_MAX


def test_the_head_of_an_entry_needs_room_as_well() -> None:
    total = StoredTotal(44)
    total.set_max(100)
    assert total.is_limited
    assert total.bytes_max == 100
    assert total.bytes + 56 <= total.body_end < total.bytes + 57
    total.set_max(STORED_BYTES_MAX)
    assert not total.is_limited


def test_an_owner_takes_over_what_a_topic_has_counted() -> None:
    total, own = StoredTotal(44, "acme"), StoredTotal(44)
    total.bytes, own.bytes = 5, 7
    total.runs, own.runs = 1, 2
    total.take_over(own)
    assert (total.bytes, total.runs) == (12, 3)


def test_one_that_is_held_has_no_room_and_then_as_much_as_before() -> None:
    total = StoredTotal(44)
    total.set_max(100)
    total.hold(is_held=True)
    assert (total.bytes, total.bytes_max) == (0, 100)
    assert total.bytes > total.body_end
    total.set_max(STORED_BYTES_MAX)
    assert total.bytes > total.body_end
    total.hold(is_held=False)
    assert total.body_end == STORED_BYTES_MAX
