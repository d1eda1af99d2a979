"""The figures of how often and how long backlog quotas stopped the producers of one topic."""

from __future__ import annotations

from headgate.flow.quota.backlog_quota import QuotaType


class ProducerStops:
    """What quotas did to the producers of one topic since it was loaded."""

    __slots__ = ("_ended_ns", "_since_ns", "_spent_ns", "closed_count", "refused_count")

    def __init__(self) -> None:
        self._since_ns: list[int | None] = [None, None]
        self._ended_ns: list[int | None] = [None, None]
        self._spent_ns = [0, 0]
        self.closed_count = 0
        """Producers closed: refused by policy, parked for too long, or with too much parked."""
        self.refused_count = 0
        """Times that a producer was not created."""

    def quota_state_changed(self, kind: QuotaType, now_ns: int, *, exceeded: bool) -> None:
        """A quota stops producers from now on, or no longer does."""
        since_ns = self._since_ns[kind]
        if since_ns is not None:
            self._spent_ns[kind] += now_ns - since_ns
            self._ended_ns[kind] = now_ns
        self._since_ns[kind] = now_ns if exceeded else None

    def ended_ns(self, kind: QuotaType) -> int | None:
        """When a quota last released the producers; None if it never did or still stops them."""
        return self._ended_ns[kind]

    def stopped_ns(self, kind: QuotaType, now_ns: int) -> int:
        """Time in which a quota stopped producers, until now."""
        since_ns = self._since_ns[kind]
        return self._spent_ns[kind] + (0 if since_ns is None else now_ns - since_ns)
