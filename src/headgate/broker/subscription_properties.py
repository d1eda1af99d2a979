"""How many properties a subscription may have.

They stay in memory and in the log, once for each partition of its topic. So those of a topic with
thousands of partitions may take less each: one request would otherwise take gigabytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headgate.base.errors import InputError
from headgate.base.units import KIB, MIB

CHARACTERS_MAX: Final = 64 * KIB
"""Most characters of the properties of one subscription, as :func:`characters_of` counts them.
Pulsar has no limit."""

PROPERTY_CHARACTERS: Final = 256
"""What a property counts beside its own characters: about what it takes in memory."""

PARTITIONS_CHARACTERS_MAX: Final = 8 * MIB
"""The same of all partitions together: about half of what 4,096 subscriptions take without."""


def allowed_characters(partitions: int) -> int:
    """What the properties of a subscription of a topic with ``partitions`` may take; 0 for a topic
    that is not partitioned."""
    return min(CHARACTERS_MAX, PARTITIONS_CHARACTERS_MAX // max(partitions, 1))


def characters_of(properties: Mapping[str, str]) -> int:
    """What properties count."""
    texts = sum(len(key) + len(value) for key, value in properties.items())
    return texts + PROPERTY_CHARACTERS * len(properties)


def check_properties(properties: Mapping[str, str], partitions: int) -> None:
    """Check that a subscription of a topic with ``partitions`` may have these properties.

    Raises:
        InputError: they are too long or too many.
    """
    size, allowed = characters_of(properties), allowed_characters(partitions)
    if size > allowed:
        of_topic = f" of a topic with {partitions} partitions" * (partitions > 0)
        raise InputError(
            f"The properties of a subscription{of_topic} have {size} characters, where each counts "
            f"{PROPERTY_CHARACTERS} more: {allowed} are allowed"
        )


def copied_properties(properties: Mapping[str, str], partitions: int) -> Mapping[str, str]:
    """What a partition that is added gets of the properties of a subscription of the others: none
    if they are too long for that many partitions."""
    fits = characters_of(properties) <= allowed_characters(partitions)
    return properties if fits else {}
