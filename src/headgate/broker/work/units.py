"""The cost of long work, in units of about 4 us on the machine of docs/benchmarks.md."""

from __future__ import annotations

from typing import Final

SLICE_UNITS: Final = 256
"""The work of one iteration of the loop: about a millisecond."""

JOB_UNITS_MIN: Final = 16
"""What a job gets at least when its turn comes."""

TOPIC_RESOLVED: Final = 12
"""A topic whose limits and quotas are resolved again, without its subscriptions."""

SUBSCRIPTION_RESOLVED: Final = 4

CLIENT_CLOSED: Final = 4
"""A producer or consumer that is disconnected."""

SUBSCRIPTION_LOOKED_AT: Final = 1

SUBSCRIPTION_REMOVED: Final = 6
