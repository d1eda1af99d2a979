"""Hash ranges as clients expect them."""

from __future__ import annotations

import pytest

from headgate.metadata.bundles import (
    BUNDLES_MAX,
    bundle_finder,
    bundle_of,
    check_boundaries,
    ranges_of,
    split_bundles,
)
from headgate.metadata.errors import RefusalError


def test_four_bundles_are_a_standalones() -> None:
    assert split_bundles(4).boundaries == (
        "0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff",
    )  # fmt: skip


@pytest.mark.parametrize("count", [0, -1, BUNDLES_MAX + 1])
def test_a_count_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(RefusalError, match=f"range of \\[1, {BUNDLES_MAX}\\]") as caught:
        split_bundles(count)
    assert caught.value.status == 400


def test_given_boundaries_are_kept() -> None:
    assert check_boundaries(("0x00000000", "0x80000000", "0xffffffff")).num_bundles == 2


@pytest.mark.parametrize(
    "boundaries",
    [
        (),
        ("0x00000000",),
        ("0x00000001", "0xffffffff"),
        ("0x00000000", "0x80000000"),
        ("0x00000000", "0x80000000", "0x40000000", "0xffffffff"),
        ("0x00000000", "nonsense", "0xffffffff"),
    ],
)
def test_boundaries_that_do_not_cover_everything_are_refused(boundaries: tuple[str, ...]) -> None:
    with pytest.raises(RefusalError):
        check_boundaries(boundaries)


def test_every_topic_falls_into_one_bundle() -> None:
    bundles = split_bundles(3)
    ranges = {bundle_of(bundles, f"persistent://a/b/{number}") for number in range(100)}
    assert ranges == {
        "0x00000000_0x55555555", "0x55555555_0xaaaaaaaa", "0xaaaaaaaa_0xffffffff",
    }  # fmt: skip


def test_a_finder_gives_the_range_of_each_of_many_topics() -> None:
    bundles = split_bundles(4)
    found = bundle_finder(bundles)
    names = [f"persistent://a/b/{number}" for number in range(50)]
    assert {found(name) for name in names} == set(ranges_of(bundles))
    assert all(found(name) == bundle_of(bundles, name) for name in names)
