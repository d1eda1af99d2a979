"""How many properties a subscription may have.

They stay in memory and in the log, once for each partition of its topic. So those of a topic with
thousands of partitions may take less each, and those of a tenant have a bound together: short
requests would otherwise take gigabytes. They count as their bytes in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headgate.base.errors import InputError
from headgate.base.memory_room import why_lower
from headgate.base.text_memory import PROPERTY_BYTES, properties_bytes
from headgate.base.units import KIB, MIB

BYTES_MAX: Final = 64 * KIB
"""The properties of one subscription. Pulsar has no limit."""

PARTITIONS_BYTES_MAX: Final = 8 * MIB
"""The same of all partitions together: about half of what 4,096 subscriptions take without."""

TENANT_BYTES_MAX: Final = 64 * MIB
"""Those of all subscriptions of a tenant, in all partitions: 3 KiB for each of 20,000."""


def allowed_bytes(partitions: int) -> int:
    """What the properties of a subscription of a topic with ``partitions`` may take; 0 for a topic
    that is not partitioned."""
    return min(BYTES_MAX, PARTITIONS_BYTES_MAX // max(partitions, 1))


def check_properties(
    properties: Mapping[str, str],
    partitions: int,
    of_tenant: int,
    replaced_bytes: int = 0,
    part: float = 1.0,
) -> None:
    """Check that a subscription of a topic with ``partitions`` may have these properties in the
    place of ``replaced_bytes`` of the ``of_tenant`` that its tenant has. Less than before is always
    allowed: an earlier release may have admitted more. The tenant has ``part`` of its bound.

    Raises:
        InputError: they are too long or too many.
    """
    size, allowed = properties_bytes(properties), allowed_bytes(partitions)
    if size > allowed:
        of_topic = f" of a topic with {partitions} partitions" * (partitions > 0)
        raise InputError(
            f"The properties of a subscription{of_topic} take {size} bytes of memory, where each "
            f"counts {PROPERTY_BYTES} more: {allowed} are allowed"
        )
    of_others = of_tenant - replaced_bytes
    tenant_max = int(part * TENANT_BYTES_MAX)
    if size > replaced_bytes and of_others + size > tenant_max:
        raise InputError(
            f"The properties take {size} bytes of memory, and those of other subscriptions of the "
            f"tenant {of_others}, where each partition has its own: {tenant_max} are allowed"
            f"{why_lower(part)}"
        )


def copied_properties(
    properties: Mapping[str, str], partitions: int, of_tenant: int
) -> Mapping[str, str]:
    """What a partition that is added gets of the properties of a subscription of the others: none
    if they are too long for that many partitions, or for the tenant."""
    size = properties_bytes(properties)
    fits = size <= allowed_bytes(partitions) and of_tenant + size <= TENANT_BYTES_MAX
    return properties if fits else {}
