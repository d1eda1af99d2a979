"""The series of the disk, the commits and the room for connections."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import BROKER_LABELS, Series, own_broker_series

DISK_FREE_SERIES: Final = own_broker_series(
    "disk_free_bytes",
    "gauge",
    "bytes",
    "Free space of the file system of the data directory, read every 5 s.",
)
DISK_SIZE_SERIES: Final = own_broker_series(
    "disk_size_bytes", "gauge", "bytes", "Size of the file system of the data directory."
)
DISK_FULL_SERIES: Final = own_broker_series(
    "disk_full",
    "gauge",
    "1",
    "1 while published messages wait because the log has no room, else 0.",
)
DISK_FULL_SECONDS_SERIES: Final = own_broker_series(
    "disk_full_seconds_total",
    "counter",
    "s",
    "Time in which messages waited for disk space, since the start.",
)
DISK_FULL_IN_SERIES: Final = own_broker_series(
    "disk_full_in_seconds",
    "gauge",
    "s",
    "Time until messages wait for disk space, at the growth of the last ten minutes, or of the last"
    " hour where that shows none; 0 while they wait. Absent while the disk does not fill up within"
    " a week, and in the first minutes after a start.",
)
DISK_GROWTH_SERIES: Final = Series(
    "headgate_disk_growth_bytes_per_second",
    "gauge",
    (*BROKER_LABELS, "content"),
    "bytes/s",
    "Growth of the used disk from which headgate_disk_full_in_seconds follows. retained: retained"
    " messages; unneeded: records that no topic needs, which a running backup holds; other: all"
    " files outside the logs. Below 0 for what shrinks. Absent in the first minutes after a start.",
)
COMMITS_SERIES: Final = own_broker_series(
    "commits_total",
    "counter",
    "commits",
    "Group commits of the log since the start, failed ones included.",
)
COMMIT_SECONDS_SERIES: Final = own_broker_series(
    "commit_seconds_total",
    "counter",
    "s",
    "Time that group commits took, from the hand-over to the disk until durable: the least that a"
    " receipt takes.",
)
COMMIT_LONGEST_SERIES: Final = own_broker_series(
    "commit_longest_seconds",
    "gauge",
    "s",
    "The longest commit of the last 10 s; 0 without commits.",
)
COMMIT_RUNNING_SERIES: Final = own_broker_series(
    "commit_running_seconds",
    "gauge",
    "s",
    "Age of the running commit; 0 without one.",
)
CONNECTIONS_REFUSED_SERIES: Final = own_broker_series(
    "connections_refused_total",
    "counter",
    "connections",
    "Connections refused since the start for lack of file descriptors.",
)
_STATES = (
    "live: records of retained messages; pinned: records that nothing needs, in segments that also"
    " hold retained messages; dead: segments without any, deleted behind the next checkpoint;"
    " index: footers of segments; open: room of the segments that are being written; checkpoint"
)
STORAGE_BYTES_SERIES: Final = Series(
    "headgate_storage_bytes",
    "gauge",
    (*BROKER_LABELS, "log", "state"),
    "bytes",
    f"The log's files by what they are needed for, which adds up to all of it. {_STATES}.",
)
STORAGE_SEGMENTS_SERIES: Final = Series(
    "headgate_storage_segments",
    "gauge",
    (*BROKER_LABELS, "log"),
    "files",
    "Segment files of the log, prepared ones included.",
)
STORAGE_WRITTEN_SERIES: Final = Series(
    "headgate_storage_written_bytes_total",
    "counter",
    (*BROKER_LABELS, "log", "content"),
    "bytes",
    "What the log has written since the start. messages: records of messages; records: others, such"
    " as acknowledgements; footers of segments; checkpoints with their copies; rewritten: what was"
    " copied forward out of segments that it pinned. The sum over that of messages is the write"
    " amplification.",
)


INDEX_SERIES: Final = tuple(
    Series(f"headgate_index_{name}", kind, (*BROKER_LABELS, "log"), unit, text)
    for name, kind, unit, text in (
        (
            "cache_bytes",
            "gauge",
            "bytes",
            "Memory of the log's index blocks that were read from the disk; at most"
            " headgateIndexCacheSizeMB.",
        ),
        (
            "cache_hits_total",
            "counter",
            "look-ups",
            "Look-ups of old messages that found their index block in memory, since the start.",
        ),
        (
            "cache_misses_total",
            "counter",
            "blocks",
            "Index blocks that were read from the disk since the start, 4 KB each. If it grows as "
            "fast as the hits, headgateIndexCacheSizeMB is small for so many readers.",
        ),
        (
            "blocks_read_at_once_total",
            "counter",
            "blocks",
            "Those of them that the event loop itself read and waited for.",
        ),
        (
            "blocks_rebuilt_total",
            "counter",
            "blocks",
            "Damaged index blocks that were rebuilt from the messages, since the start.",
        ),
        (
            "blocks_lost_total",
            "counter",
            "blocks",
            "Damaged index blocks that could not be rebuilt in full, since the start: the messages "
            "that are missing in them are refused as damaged.",
        ),
    )
)
"""In the order of :class:`headgate.ledger.statistics.IndexUse`."""
TRIMS_FOUND_SERIES: Final = own_broker_series(
    "trims_found_by_walk_total",
    "counter",
    "topics",
    "Topics in which a walk of all topics found messages to remove that no event had announced,"
    " since the start: an internal error if it grows.",
)
TENANT_STORED_SERIES: Final = Series(
    "headgate_tenant_stored_bytes",
    "gauge",
    (*BROKER_LABELS, "tenant"),
    "bytes",
    "What all topics of a tenant store: retained messages, with 44 bytes for each entry.",
)
TENANT_FULL_SERIES: Final = Series(
    "headgate_tenant_storage_full",
    "gauge",
    (*BROKER_LABELS, "tenant"),
    "1",
    "1 while a tenant's producers are refused because it stores all that it may"
    " (headgateMaxStoragePerTenantMB, or less near the limit on the broker's memory), else 0.",
)
STORAGE_SERIES: Final = (
    DISK_FREE_SERIES,
    DISK_SIZE_SERIES,
    DISK_FULL_SERIES,
    DISK_FULL_SECONDS_SERIES,
    DISK_FULL_IN_SERIES,
    DISK_GROWTH_SERIES,
    COMMITS_SERIES,
    COMMIT_SECONDS_SERIES,
    COMMIT_LONGEST_SERIES,
    COMMIT_RUNNING_SERIES,
    CONNECTIONS_REFUSED_SERIES,
    STORAGE_BYTES_SERIES,
    STORAGE_SEGMENTS_SERIES,
    STORAGE_WRITTEN_SERIES,
    *INDEX_SERIES,
    TRIMS_FOUND_SERIES,
    TENANT_STORED_SERIES,
    TENANT_FULL_SERIES,
)
