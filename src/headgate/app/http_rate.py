"""Bounds the rate of requests at the web ports: Pulsar's ``httpRequestsMaxPerSecond``.

It counts the requests of all clients together, as Pulsar does, before anything is asked of them.
"""

from __future__ import annotations

from headgate.base.units import NS_PER_S
from headgate.flow.limits.budget import Budget
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.policy.settings import Settings


class HttpRate:
    """Requests of the last second, and their limit, which may change."""

    def __init__(self, settings: Settings, now_ns: int) -> None:
        self._settings = settings
        self._budget = Budget(self._limit(), NS_PER_S, Level.BROKER, Dimension.MESSAGES, now_ns)
        self.refused_count = 0
        """Requests refused since the start."""

    def refusal(self, now_ns: int) -> str:
        """Why a request that arrives at ``now_ns`` is refused; empty if it is not."""
        if not self._settings.httpRequestsLimitEnabled:
            return ""
        budget, limit = self._budget, self._limit()
        if limit != budget.limit:
            budget.change(limit, NS_PER_S, now_ns)
        if budget.release_ns(now_ns) <= now_ns:
            budget.charge(now_ns, 1)
            return ""
        self.refused_count += 1
        return f"Too many requests: {limit} a second are allowed (httpRequestsMaxPerSecond)"

    def _limit(self) -> int:
        return max(1, int(self._settings.httpRequestsMaxPerSecond))
