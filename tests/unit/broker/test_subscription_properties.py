"""How many properties a subscription may have depends on the partitions of its topic."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.base.text_memory import PROPERTY_BYTES, properties_bytes
from headgate.broker.subscription_properties import (
    BYTES_MAX,
    TENANT_BYTES_MAX,
    allowed_bytes,
    check_properties,
    copied_properties,
)

MIB_8 = 8 * 1024 * 1024


@pytest.mark.parametrize(
    ("partitions", "allowed"),
    [(0, 65_536), (1, 65_536), (128, 65_536), (129, 65_027), (1_000, 8_388), (4_096, 2_048)],
)
def test_all_partitions_together_have_a_bound(partitions: int, allowed: int) -> None:
    assert allowed_bytes(partitions) == allowed
    assert allowed * max(partitions, 1) <= MIB_8
    fits = {"k": "v" * (allowed - 1 - PROPERTY_BYTES)}
    assert properties_bytes(fits) == allowed
    check_properties(fits, partitions, 0)
    assert copied_properties(fits, partitions, 0) == fits
    too_long = {"k": fits["k"] + "v"}
    with pytest.raises(InputError, match=f"{allowed + 1} bytes of memory, .*: {allowed} are"):
        check_properties(too_long, partitions, 0)
    assert copied_properties(too_long, partitions, 0) == {}


def test_a_crowd_of_short_properties_counts_what_it_takes() -> None:
    """Each is two texts and a place in the tables of the topic and of the log."""
    properties = {f"{number:x}": "" for number in range(15_000)}
    assert sum(map(len, properties)) < BYTES_MAX
    with pytest.raises(InputError, match="65536 are allowed"):
        check_properties(properties, 0, 0)


def test_a_refusal_names_the_partitions() -> None:
    with pytest.raises(InputError, match="of a topic with 4096 partitions take 5257 bytes"):
        check_properties({"k": "v" * 5_000}, 4_096, 0)
    check_properties({}, 4_096, 0)


def test_one_wide_character_counts_as_the_memory_that_it_takes() -> None:
    """Python keeps each character of a text as wide as its widest one."""
    with pytest.raises(InputError, match="65536 are allowed"):
        check_properties({"k": "\U0001f600" + "a" * 20_000}, 0, 0)


def test_those_of_a_tenant_have_a_bound_together() -> None:
    properties = {"k": "v"}
    of_others = TENANT_BYTES_MAX - properties_bytes(properties)
    check_properties(properties, 2, of_others)
    assert copied_properties(properties, 2, of_others) == properties
    with pytest.raises(InputError, match="of the tenant 67108607, "):
        check_properties(properties, 2, of_others + 1)
    assert copied_properties(properties, 2, of_others + 1) == {}
    size = properties_bytes(properties)
    check_properties(properties, 2, 2 * TENANT_BYTES_MAX, size)  # no more than before
    with pytest.raises(InputError, match="of the tenant"):
        check_properties(properties, 2, 2 * TENANT_BYTES_MAX, size - 1)


def test_near_the_limit_on_the_memory_a_tenant_has_a_part_of_the_bound() -> None:
    size = properties_bytes({"k": "v"})
    check_properties({"k": "v"}, 0, TENANT_BYTES_MAX // 2 - size, part=0.5)
    with pytest.raises(InputError, match="allowed, because the broker is near the limit"):
        check_properties({"k": "v"}, 0, TENANT_BYTES_MAX // 2 - size + 1, part=0.5)
