"""Every derived table, after those that it follows from."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.derived.attribution import Attribution, DemonstratedRates
from headgate.pipeline.derived.derived_table import DerivedTable
from headgate.pipeline.derived.episodes import Episodes
from headgate.pipeline.derived.intervals import Intervals
from headgate.pipeline.derived.publishing import PublishAttribution, ThrottleTimeline
from headgate.pipeline.derived.quotas import Evictions, QuotaUsage

DERIVED: Final[tuple[DerivedTable, ...]] = (
    Intervals(),
    DemonstratedRates(),
    Attribution(),
    Episodes(),
    PublishAttribution(),
    ThrottleTimeline(),
    QuotaUsage(),
    Evictions(),
)
