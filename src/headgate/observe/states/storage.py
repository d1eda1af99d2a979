"""The resources that all topics share: the disk, commit latency, room for connections."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.base.stored_total import StoredTotal
from headgate.base.units import NS_PER_S
from headgate.broker.connection_admission import ConnectionAdmission
from headgate.engine.tenant_storage import full_text
from headgate.explain.states import StorageState
from headgate.flow.sentences.disk import (
    MAKE_ROOM,
    commit_latency_sentence,
    disk_sentence,
    low_disk_sentence,
)
from headgate.flow.sentences.disk_forecast import filling_sentence
from headgate.flow.topic_growth import TopicGrowths
from headgate.observe.states.filling import filling_facts
from headgate.storage.commit_latency import CommitLatency
from headgate.storage.disk_monitor import DiskMonitor


def storage_state(
    disk: DiskMonitor,
    growths: TopicGrowths | None,
    full_tenants: Iterable[StoredTotal],
    latency: CommitLatency,
    admission: ConnectionAdmission,
    now_ns: int,
) -> StorageState:
    """The state of the disk, the commits and the room for connections, now.

    Its sentence names the topics of ``growths`` that grow most, and without them no topic: for
    readers who may see one topic alone. ``full_tenants`` store all that they may.
    """
    space, commits = disk.facts(), latency.facts()
    will_be_full = space.full_s is None and disk.growth.is_soon(now_ns)
    room = (
        disk_sentence(space) or low_disk_sentence(space, has_forecast=will_be_full),
        filling_sentence(filling_facts(disk, growths)) if will_be_full else "",
    )
    sentences = (
        *room,
        MAKE_ROOM if any(room) else "",
        *(f"{full_text(stored)}: its producers are refused" for stored in full_tenants),
        commit_latency_sentence(commits),
        admission.sentence,
    )
    return StorageState(
        sentence="; ".join(sentence for sentence in sentences if sentence),
        disk_full=space.full_s is not None,
        disk_full_s=disk.full_ns(now_ns) / NS_PER_S,
        free_bytes=space.free_bytes,
        size_bytes=space.size_bytes,
        disk_full_in_s=disk.full_in_s(),
        disk_slow=commits.is_slow,
        commit_mean_s=commits.mean_s if commits.commits else None,
        commit_longest_s=commits.longest_s if commits.commits else None,
        commit_running_s=commits.running_s,
        connections_refused=admission.refused_count,
    )
