"""The instant from which the seconds to a breach count, also in older folders."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headgate.pipeline.output.breach_times import BREACH_COLUMNS, counted_from_ns, likely_ns
from tests.unit.pipeline.play import T0, S

MADE = datetime.fromtimestamp(T0 / S - 120, UTC)


def usage(**values: Any) -> dict[str, Any]:
    minute = datetime.fromtimestamp(T0 / S, UTC)
    return {**dict.fromkeys(BREACH_COLUMNS), "minute": minute, **values}


def test_seconds_count_from_the_end_of_the_telemetry() -> None:
    row = usage(to_ns=T0 + 24 * S, forecast_at=MADE, seconds_to_breach=1.5)
    assert counted_from_ns(row) == T0 + 24 * S
    assert likely_ns(row) == T0 + 25 * S + S // 2
    assert likely_ns(usage(to_ns=T0)) is None


def test_seconds_of_older_folders_count_from_the_forecast() -> None:
    assert counted_from_ns(usage(forecast_at=MADE)) == T0 - 120 * S
    assert counted_from_ns(usage()) == T0 + 60 * S
