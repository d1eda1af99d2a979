"""Series of the memory that clients make the broker hold."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import (
    BROKER_LABELS,
    Series,
    own_broker_series,
)

_KINDS = (
    "connections: the connections themselves; received: parts of frames; unsent: what clients have"
    " not read; descriptions: producers and consumers; commands: those that wait; pending:"
    " positions of unacknowledged messages. Measured every second. The limit bounds their sum; it"
    " does not bound parked (SENDs that wait for a limit) and staged (SENDs that are not durable),"
    " which `maxMessagePublishBufferSizeInMB` bounds, nor http (requests at the web port and their"
    " answers), which `headgateHttpMemoryMB` bounds"
)
CLIENT_MEMORY_BYTES_SERIES: Final = Series(
    "headgate_client_memory_bytes",
    "gauge",
    (*BROKER_LABELS, "kind"),
    "bytes",
    f"Memory that clients make the broker hold. {_KINDS}.",
)
CLIENT_MEMORY_SERIES: Final = (
    own_broker_series(
        "client_memory_limit_bytes",
        "gauge",
        "bytes",
        "The bound on that memory: `headgateClientMemoryMB`, or less while the process nears its "
        "limit.",
    ),
    own_broker_series(
        "client_memory_slowed_connections",
        "gauge",
        "connections",
        "Connections that are not read now, because they hold most and all together too much.",
    ),
    own_broker_series(
        "client_memory_closed_total",
        "counter",
        "connections",
        "Connections closed since the start, because they held most and all together too much.",
    ),
)
