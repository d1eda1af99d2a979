"""The catalogue: every table and view by its name. No Spark, no Arrow.

Column names that also are fields of the telemetry record have the record's meaning and unit; in a
row of a minute a cumulative field holds its growth inside the minute and a level its value at the
end of it. All times are UTC. ``date`` and ``hour`` are those of a row's last nanosecond, so that
a window that ends at a full hour belongs to the hour it covers.
"""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_EVENTS, BRONZE_QUARANTINE, BRONZE_SAMPLES
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES
from headgate.pipeline.tables.episodes import EPISODES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from headgate.pipeline.tables.quality import QUALITY
from headgate.pipeline.tables.quotas import EVICTIONS, QUOTA_USAGE

SPARK_FORMAT: Final = "headgate_tables"
"""The name of the tables' Spark data source: ``format("headgate_tables")``."""

TABLES: Final = {
    table.name: table
    for table in (
        BRONZE_SAMPLES,
        BRONZE_EVENTS,
        BRONZE_QUARANTINE,
        INTERVALS,
        DEMONSTRATED_RATES,
        ATTRIBUTION,
        EPISODES,
        PUBLISH_ATTRIBUTION,
        THROTTLE_TIMELINE,
        QUOTA_USAGE,
        EVICTIONS,
        QUALITY,
        POLICY_BACKTEST,
    )
}
"""All tables by name."""

FILLED: Final = tuple(name for name in TABLES if name != POLICY_BACKTEST.name)
"""Names of the tables that telemetry or scrapes fill; one job at a time does."""

CHECKED: Final = tuple(
    table for table in TABLES.values() if "hour" in table.partition_by and table is not QUALITY
)
"""The tables that ``quality`` checks: those that are stored by the hour."""

VIEWS: Final = {"backlog_episodes": EPISODES.name, "namespace_rollup": INTERVALS.name}
"""Views that ``show`` prints like tables, with the table that each is computed from."""
