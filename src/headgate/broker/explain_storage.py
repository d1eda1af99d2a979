"""The disk as explain shows it: whether it is full, for how long, how much room there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.base.units import NS_PER_S
from headgate.broker.explain_types import StorageState
from headgate.flow.disk_sentence import disk_sentence

if TYPE_CHECKING:
    from headgate.broker.service import Broker


def storage_state(broker: Broker) -> StorageState:
    """What the disk does now."""
    facts = broker.disk.facts()
    return StorageState(
        sentence=disk_sentence(facts),
        disk_full=facts.full_s is not None,
        disk_full_s=broker.disk.full_ns(broker.engine.now_ns) / NS_PER_S,
        free_bytes=facts.free_bytes,
        size_bytes=facts.size_bytes,
    )
