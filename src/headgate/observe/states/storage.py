"""What explain and health say of what all topics stand on: the disk, and room for connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.base.units import NS_PER_S
from headgate.flow.sentences.disk import disk_sentence, pace_sentence
from headgate.observe.explain.reports import StorageState

if TYPE_CHECKING:
    from headgate.broker.service import Broker


def storage_state(broker: Broker) -> StorageState:
    """How it is now."""
    facts, pace = broker.disk.facts(), broker.committer.pace.facts()
    said = (disk_sentence(facts), pace_sentence(pace), broker.door.sentence)
    return StorageState(
        sentence="; ".join(sentence for sentence in said if sentence),
        disk_full=facts.full_s is not None,
        disk_full_s=broker.disk.full_ns(broker.engine.now_ns) / NS_PER_S,
        free_bytes=facts.free_bytes,
        size_bytes=facts.size_bytes,
        disk_slow=pace.is_slow,
        commit_mean_s=pace.mean_s if pace.commits else None,
        commit_longest_s=pace.longest_s if pace.commits else None,
        commit_running_s=pace.running_s,
        connections_refused=broker.door.refused_count,
    )
