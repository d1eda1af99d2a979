"""The units of the broker's long work, from the table in :mod:`headgate.base.work_units`."""

from __future__ import annotations

from headgate.base.work_units import CLIENT_CLOSED as CLIENT_CLOSED
from headgate.base.work_units import CONNECTION_ENDED as CONNECTION_ENDED
from headgate.base.work_units import CONNECTION_MEASURED as CONNECTION_MEASURED
from headgate.base.work_units import CONNECTION_RESUMED as CONNECTION_RESUMED
from headgate.base.work_units import CONNECTION_SLOWED as CONNECTION_SLOWED
from headgate.base.work_units import JOB_UNITS_MIN as JOB_UNITS_MIN
from headgate.base.work_units import OBJECTS_PER_MEASURED as OBJECTS_PER_MEASURED
from headgate.base.work_units import PIECE_UNITS as PIECE_UNITS
from headgate.base.work_units import PRODUCER_RESOLVED as PRODUCER_RESOLVED
from headgate.base.work_units import SLICE_UNITS as SLICE_UNITS
from headgate.base.work_units import SUBSCRIPTION_LOOKED_AT as SUBSCRIPTION_LOOKED_AT
from headgate.base.work_units import SUBSCRIPTION_REMOVED as SUBSCRIPTION_REMOVED
from headgate.base.work_units import SUBSCRIPTION_RESOLVED as SUBSCRIPTION_RESOLVED
from headgate.base.work_units import TOPIC_RESOLVED as TOPIC_RESOLVED
from headgate.base.work_units import TOPIC_TRIMMED as TOPIC_TRIMMED
