"""The law of rewriting: what pays, what joins, and what stays as it is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from headgate.base.sliced import at_once
from headgate.ledger.space import rewrite_choice
from headgate.ledger.space.rewrite_choice import (
    FEW_MIN,
    GAIN_PART,
    SLICE_SEGMENTS,
    SegmentUse,
    kept_bytes,
)

SEGMENT = 1_000_000


def choose_segments(
    uses: Sequence[SegmentUse], live_bytes: int, segment_bytes: int
) -> tuple[int, ...]:
    """The choice, without a pause."""
    return at_once(rewrite_choice.choose_segments(uses, live_bytes, segment_bytes))


def use(segment: int, disk: int, kept: int, *, is_fit: bool = True) -> SegmentUse:
    return SegmentUse(segment, disk, kept, is_fit)


def test_nothing_is_copied_while_little_can_be_freed() -> None:
    uses = [use(1, 500_000, 50_000)]
    assert choose_segments(uses, 0, SEGMENT) == ()
    assert choose_segments(uses, 10_000_000, SEGMENT) == ()
    assert choose_segments([], 0, SEGMENT) == ()


def test_a_sparse_segment_is_copied_once_the_slack_is_used() -> None:
    assert choose_segments([use(4, 900_000, 50_000)], 1_000_000, SEGMENT) == (4,)


def test_a_segment_is_left_alone_if_its_copy_frees_too_little() -> None:
    full = [use(at, 1_000_000, int(1_000_000 / (1 + GAIN_PART)) + 1) for at in range(50)]
    assert choose_segments(full, 1_000_000, SEGMENT) == ()
    pays = [use(at, 1_000_000, int(1_000_000 / (1 + GAIN_PART)) - 1) for at in range(50)]
    assert len(choose_segments(pays, 1_000_000, SEGMENT)) == 1


def test_neighbours_join_up_to_one_segment() -> None:
    uses = [use(at, 900_000, 200_000) for at in (2, 3, 5, 8, 9, 12, 13, 14)]
    found = choose_segments(uses, 1_000_000, SEGMENT)
    assert len(found) == 5
    assert found == (2, 3, 5, 8, 9)  # the oldest


def test_a_neighbour_that_does_not_pay_or_is_unfit_ends_the_row() -> None:
    uses = [
        use(1, 900_000, 100_000),
        use(2, 900_000, 899_000),
        use(3, 900_000, 90_000),
        use(4, 900_000, 100_000),
        use(5, 900_000, 100_000, is_fit=False),
        use(6, 900_000, 800_000),
    ]
    assert choose_segments(uses, 1_000_000, SEGMENT) == (1,)
    assert choose_segments(uses[1:], 1_000_000, SEGMENT) == (3, 4)
    assert choose_segments(uses[4:], 1_000_000, SEGMENT) == ()


def test_an_old_segment_counts_more_than_a_young_one() -> None:
    uses = [use(1, 900_000, 200_000), use(2, 900_000, 899_000), use(30, 900_000, 180_000)]
    assert choose_segments(uses, 1_000_000, SEGMENT) == (1,)


def test_many_small_neighbours_join_although_little_is_freed() -> None:
    small = [use(at, 100_000, 99_000) for at in range(FEW_MIN)]
    assert choose_segments(small, 10_000_000, SEGMENT) == tuple(range(FEW_MIN))
    assert choose_segments(small[1:], 10_000_000, SEGMENT) == ()
    small[3] = use(3, 700_000, 699_000)
    assert choose_segments(small, 10_000_000, SEGMENT) == ()


def test_a_row_of_small_neighbours_fits_into_a_segment() -> None:
    small = [use(at, 120_000, 119_000) for at in range(40)]
    assert choose_segments(small, 10_000_000, SEGMENT) == tuple(range(8))


@pytest.mark.parametrize("kept", [100_000, 850_000])
def test_very_many_segments_are_looked_at_in_slices(kept: int) -> None:
    looks: list[int] = []

    class Looked(SegmentUse):
        @property
        def pays(self) -> bool:
            looks.append(self.segment)
            return super().pays

    count = 10 * SLICE_SEGMENTS
    uses = [Looked(at, 900_000, kept) for at in range(count)]
    most = 0
    steps = rewrite_choice.choose_segments(uses, count * kept, SEGMENT)
    for _ in itertools.islice(steps, 100):
        most, looks = max(most, len(looks)), []
    assert most <= SLICE_SEGMENTS


def test_the_copy_has_its_share_of_the_index() -> None:
    whole = kept_bytes(1_000, 0, 1_000, 400)
    half = kept_bytes(500, 0, 1_000, 400)
    assert whole - half == 500 + 200
    assert kept_bytes(0, 0, 0, 0) == whole - 1_400
    assert kept_bytes(0, 3, 0, 0) > kept_bytes(0, 0, 0, 0) + 3 * 88


def test_the_copies_of_a_long_life_are_bounded_by_what_was_stored() -> None:
    """Each segment loses a tenth at every step; what is copied pays for itself."""
    live: dict[int, float] = {}
    disk: dict[int, float] = {}
    copied = stored = 0.0
    for at in range(300):
        live[at] = disk[at] = SEGMENT
        stored += SEGMENT
        for segment in live:
            live[segment] *= 0.9
        for segment in [s for s, left in live.items() if left < SEGMENT / 50]:
            del live[segment], disk[segment]
        while True:
            uses = [use(s, int(disk[s]), int(live[s])) for s in sorted(live)]
            chosen = choose_segments(uses, int(sum(live.values())), SEGMENT)
            if not chosen:
                break
            merged = sum(live.pop(segment) for segment in chosen)
            for segment in chosen:
                del disk[segment]
            live[chosen[-1]] = disk[chosen[-1]] = merged
            copied += merged
        assert sum(disk.values()) <= 1.5 * sum(live.values()) + SEGMENT
    assert copied <= stored / GAIN_PART
