"""How many properties a subscription may have depends on the partitions of its topic."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.broker.subscription_properties import (
    CHARACTERS_MAX,
    PROPERTY_CHARACTERS,
    allowed_characters,
    characters_of,
    check_properties,
    copied_properties,
)

MIB_8 = 8 * 1024 * 1024


@pytest.mark.parametrize(
    ("partitions", "allowed"),
    [(0, 65_536), (1, 65_536), (128, 65_536), (129, 65_027), (1_000, 8_388), (4_096, 2_048)],
)
def test_all_partitions_together_have_a_bound(partitions: int, allowed: int) -> None:
    assert allowed_characters(partitions) == allowed
    assert allowed * max(partitions, 1) <= MIB_8
    fits = {"k": "v" * (allowed - 1 - PROPERTY_CHARACTERS)}
    assert characters_of(fits) == allowed
    check_properties(fits, partitions)
    assert copied_properties(fits, partitions) == fits
    too_long = {"k": fits["k"] + "v"}
    with pytest.raises(InputError, match=f"{allowed + 1} characters, .*: {allowed} are allowed"):
        check_properties(too_long, partitions)
    assert copied_properties(too_long, partitions) == {}


def test_a_crowd_of_short_properties_counts_what_it_takes() -> None:
    """Each is two texts and a place in the tables of the topic and of the log."""
    properties = {f"{number:x}": "" for number in range(15_000)}
    assert sum(map(len, properties)) < CHARACTERS_MAX
    with pytest.raises(InputError, match="65536 are allowed"):
        check_properties(properties, 0)


def test_a_refusal_names_the_partitions() -> None:
    with pytest.raises(InputError, match="of a topic with 4096 partitions have 5257 characters"):
        check_properties({"k": "v" * 5_000}, 4_096)
    check_properties({}, 4_096)
