"""When a quota is reached, from a row of ``quota_usage``. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import since_epoch_us

BREACH_COLUMNS: Final = ("minute", "to_ns", "forecast_at", "seconds_to_breach")
"""Columns of ``quota_usage`` that are read."""


def counted_from_ns(row: Mapping[str, Any]) -> int:
    """The instant from which a row's seconds count, since the epoch.

    It is the end of the row's telemetry. Rows of earlier versions lack it: their seconds count from
    the forecast, or from the end of the minute if they lack the forecast, too.
    """
    if row["to_ns"] is not None:
        return int(row["to_ns"])
    if row["forecast_at"] is not None:
        return since_epoch_us(row["forecast_at"]) * NS_PER_US
    return since_epoch_us(row["minute"]) * NS_PER_US + MINUTE_NS


def likely_ns(row: Mapping[str, Any]) -> int | None:
    """When a quota is likely reached, since the epoch; None: not within a day."""
    seconds = row["seconds_to_breach"]
    return None if seconds is None else counted_from_ns(row) + int(seconds * NS_PER_S)
