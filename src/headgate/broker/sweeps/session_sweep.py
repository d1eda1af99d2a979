"""The sweep that looks for sessions whose credentials lapse."""

from __future__ import annotations

from typing import Final

from headgate.broker.authentication import Authentication
from headgate.broker.work.scheduler import JobClass, WorkScheduler

CHECK_PERIOD_S: Final = 1.0
"""A session ends at most about this long after its credentials lapsed."""


class SessionSweep:
    """Looks at the sessions of one broker, in slices between which the loop serves others."""

    def __init__(self, authentication: Authentication, work: WorkScheduler) -> None:
        self._authentication = authentication
        self._work = work

    async def check(self) -> None:
        """Look once at all that are due, and log failed attempts that were not logged yet."""
        authentication = self._authentication
        authentication.log_ended_periods()
        steps = authentication.sessions.steps(authentication.now_s())
        await self._work.run("checking credentials that lapse", JobClass.COMMAND, steps)
