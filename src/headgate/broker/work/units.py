"""The cost of long work, in units of about 4 us on the machine of docs/benchmarks.md."""

from __future__ import annotations

from typing import Final

SLICE_UNITS: Final = 256
"""The work of one iteration of the loop: about a millisecond."""

PIECE_UNITS: Final = 64
"""What a walk in pieces does between two pauses: a quarter of a millisecond."""

JOB_UNITS_MIN: Final = 16
"""What a job gets at least when its turn comes."""

TOPIC_RESOLVED: Final = 12
"""A topic whose limits and quotas are resolved again, without its subscriptions."""

SUBSCRIPTION_RESOLVED: Final = 4

TOPIC_TRIMMED: Final = 12
"""A topic whose releasable entries are looked for, and trimmed."""

CLIENT_CLOSED: Final = 4
"""A producer or consumer that is disconnected."""

SUBSCRIPTION_LOOKED_AT: Final = 1

SUBSCRIPTION_REMOVED: Final = 6

CONNECTION_MEASURED: Final = 1
"""A connection whose memory is measured, without its producers and consumers."""

OBJECTS_PER_MEASURED: Final = 20
"""As many producers and consumers are measured with one unit."""

CONNECTION_SLOWED: Final = 2
"""A connection that is no longer read."""

CONNECTION_RESUMED: Final = 16
"""A connection that is read again, with a larger buffer for what it has begun."""

CONNECTION_ENDED: Final = 16
"""A connection that is closed; its many clients are closed in slices of their own."""
