"""Every series of ``GET /metrics``, in the order of the page."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.adaptive import ADAPTIVE_SERIES, ADAPTIVE_TOPIC_SERIES
from headgate.telemetry.prometheus.series.authentication import AUTHENTICATION_SERIES
from headgate.telemetry.prometheus.series.broker import (
    BROKER_SERIES,
    DAMAGE_SERIES,
    TURN_SERIES,
)
from headgate.telemetry.prometheus.series.client_memory import (
    CLIENT_MEMORY_BYTES_SERIES,
    CLIENT_MEMORY_SERIES,
)
from headgate.telemetry.prometheus.series.limits import (
    HELD_BACK_SERIES,
    LIMIT_SERIES,
    THROTTLED_SERIES,
)
from headgate.telemetry.prometheus.series.namespaces import NAMESPACE_SERIES
from headgate.telemetry.prometheus.series.parked import PARKED_SERIES
from headgate.telemetry.prometheus.series.quotas import (
    CHECK_DEFECTS_SERIES,
    CHECK_DURATION_SERIES,
    EVICTIONS_OF_BROKER_SERIES,
    QUOTA_SERIES,
)
from headgate.telemetry.prometheus.series.schemas import SCHEMA_SERIES
from headgate.telemetry.prometheus.series.storage import STORAGE_SERIES
from headgate.telemetry.prometheus.series.subscriptions import (
    BACKLOG_AGE_SERIES,
    STATE_SERIES,
    SUBSCRIPTION_SERIES,
)
from headgate.telemetry.prometheus.series.tls import TLS_SERIES
from headgate.telemetry.prometheus.series.topics import (
    LEFT_OUT_SERIES,
    TOPIC_DUPLICATES_SERIES,
    TOPIC_SERIES,
)
from headgate.telemetry.prometheus.series.writes import WRITE_SERIES

SERIES: Final = (
    *BROKER_SERIES,
    EVICTIONS_OF_BROKER_SERIES,
    *TURN_SERIES,
    *DAMAGE_SERIES,
    CHECK_DURATION_SERIES,
    CHECK_DEFECTS_SERIES,
    *STORAGE_SERIES,
    *TLS_SERIES,
    CLIENT_MEMORY_BYTES_SERIES,
    *CLIENT_MEMORY_SERIES,
    AUTHENTICATION_SERIES,
    *LEFT_OUT_SERIES,
    *ADAPTIVE_SERIES,
    *NAMESPACE_SERIES,
    *SCHEMA_SERIES,
    *TOPIC_SERIES,
    TOPIC_DUPLICATES_SERIES,
    *WRITE_SERIES,
    *SUBSCRIPTION_SERIES,
    BACKLOG_AGE_SERIES,
    *THROTTLED_SERIES,
    *HELD_BACK_SERIES,
    *QUOTA_SERIES,
    *PARKED_SERIES,
    *ADAPTIVE_TOPIC_SERIES,
    STATE_SERIES,
    LIMIT_SERIES,
)
