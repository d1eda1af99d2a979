"""The columns that identify a row, of the tables with a row for each subject and minute."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.attribution import ATTRIBUTION, ATTRIBUTION_KEY
from headgate.pipeline.tables.intervals import INTERVALS, KEY_COLUMNS, TOPIC_KEY
from headgate.pipeline.tables.publishing import LIMITER_KEY, PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from headgate.pipeline.tables.quotas import QUOTA_USAGE

MINUTE: Final = "minute"

ROW_KEYS: Final = {
    INTERVALS.name: ("kind", *KEY_COLUMNS, MINUTE),
    ATTRIBUTION.name: (*ATTRIBUTION_KEY, MINUTE),
    PUBLISH_ATTRIBUTION.name: (*TOPIC_KEY, MINUTE),
    THROTTLE_TIMELINE.name: (*LIMITER_KEY, MINUTE),
    QUOTA_USAGE.name: (*TOPIC_KEY, MINUTE),
}
"""By table; a column may be null in a key."""
