"""How many jobs may be on a lane, by how long they take there."""

from __future__ import annotations

from typing import Final

from headgate.base.units import NS_PER_MS

AHEAD_NS: Final = 20 * NS_PER_MS
"""The work that may be on a lane in front of others, whoever they are: a disk that takes 10 ms for
a read has as little of it as a fast one."""

COUNT_MIN: Final = 2
"""Jobs that may be there however long they take: the lane has work while the loop handles the
result of the one before."""

FORGOTTEN_PART: Final = 16
"""A job that took long counts a sixteenth less with each job after it that did not."""


class JobTimes:
    """How long the jobs of one lane take.

    The lane's own thread measures: on the loop, a loop that is busy would look like a slow disk.
    """

    def __init__(self) -> None:
        self._job_ns = 0

    def took(self, job_ns: int) -> None:
        """Count a job. Any thread may call this, one at a time."""
        self._job_ns = max(job_ns, self._job_ns - self._job_ns // FORGOTTEN_PART)

    def at_once(self, count_max: int) -> int:
        """How many jobs one of the lane's users should have there: ``count_max``, or as many as
        take :data:`AHEAD_NS`, and :data:`COUNT_MIN` in any case."""
        return max(min(count_max, AHEAD_NS // max(self._job_ns, 1)), min(COUNT_MIN, count_max))
