"""The series of the registry of schemas."""

from __future__ import annotations

from typing import Final

from headgate.broker.schemas.figures import SchemaOperation
from headgate.telemetry.prometheus.series.definition import NAMESPACE_LABELS, Series

_WHAT: Final = {
    SchemaOperation.GET: "Requests for a version of a schema",
    SchemaOperation.PUT: "Definitions that producers, consumers or the admin API brought",
    SchemaOperation.DELETE: "Deletions of schemas",
}

SCHEMA_LATENCY_SERIES: Final = {
    operation: Series(
        f"pulsar_schema_{operation.value}_ops_latency",
        "summary",
        NAMESPACE_LABELS,
        "ms",
        f"{what} that succeeded since the start: ``_count``, and the time that they took, ``_sum``."
        " There are no quantiles.",
    )
    for operation, what in _WHAT.items()
}
SCHEMA_FAILED_SERIES: Final = {
    operation: Series(
        f"pulsar_schema_{operation.value}_ops_failed_total",
        "counter",
        NAMESPACE_LABELS,
        "operations",
        f"{what} that failed or were refused since the start.",
    )
    for operation, what in _WHAT.items()
}
COMPATIBLE_SERIES: Final = Series(
    "pulsar_schema_compatible_total",
    "counter",
    NAMESPACE_LABELS,
    "comparisons",
    "Definitions that went with the versions of their topic, since the start.",
)
INCOMPATIBLE_SERIES: Final = Series(
    "pulsar_schema_incompatible_total",
    "counter",
    NAMESPACE_LABELS,
    "comparisons",
    "Definitions that did not go with the versions of their topic, since the start.",
)

SCHEMA_SERIES: Final = (
    *SCHEMA_LATENCY_SERIES.values(),
    *SCHEMA_FAILED_SERIES.values(),
    COMPATIBLE_SERIES,
    INCOMPATIBLE_SERIES,
)
"""Of namespaces in which anything was asked about a schema."""
