"""Whether one more version fits: bounds of one topic, of one tenant and of all.

At the bound of all, tenants that have at least as much as the others on average add no more. Up to
a quarter beyond it the others still may, so that no tenant can take the room of all.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headgate.base.memory_room import why_lower
from headgate.base.units import MIB
from headgate.schema.errors import IncompatibleSchemaError

TOPIC_SHARE: Final = 16
"""The schema of one topic may take a sixteenth of the memory for all, so that nobody fills it."""

RESERVE_SHARE: Final = 4
"""Tenants with less than the average may together go beyond the bound by this part of it."""


class SchemaUse(NamedTuple):
    """What schemas take, in bytes."""

    of_topic: int
    of_tenant: int
    of_all: int
    tenants_count: int
    """Tenants that have schemas."""


def check_room(use: SchemaUse, size_bytes: int, memory_mb: int, part: float = 1.0) -> None:
    """Check that a version of ``size_bytes`` may be added. ``memory_mb`` is the setting
    ``headgateSchemaMemoryMB``. Of it tenants above the average have ``part``: less than 1 while the
    process nears the limit on its memory.

    Raises:
        IncompatibleSchemaError: it may not.
    """
    bytes_max = memory_mb * MIB
    if use.of_topic + size_bytes > bytes_max // TOPIC_SHARE:
        raise IncompatibleSchemaError(
            f"The schema of the topic takes {use.of_topic} bytes: a sixteenth of "
            f"headgateSchemaMemoryMB={memory_mb} has no room for {size_bytes} more"
        )
    is_above_average = use.of_tenant * use.tenants_count >= use.of_all
    reserve_bytes = bytes_max // RESERVE_SHARE
    allowed_bytes = int(part * bytes_max) if is_above_average else bytes_max + reserve_bytes
    if use.of_all + size_bytes > allowed_bytes:
        raise IncompatibleSchemaError(
            f"The schemas of all topics take {use.of_all} bytes, those of the tenant "
            f"{use.of_tenant}: headgateSchemaMemoryMB={memory_mb} has no room for {size_bytes} more"
            f"{why_lower(part)}"
        )
