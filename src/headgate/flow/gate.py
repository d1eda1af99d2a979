"""SIGNATURES FIRST: bodies follow within the half hour.

The life of a subscription that wants to send:

    if sg.limited:                      # plain attribute: False = skip the gate entirely
        refusal = sg.request(now_ns)    # None: send ONE entry, then charge; else it waits now
    sg.charge(now_ns, messages, bytes)  # at hand-over; only if sg.limited
    ... request() again for the next entry ...
    sg.leave(now_ns)                    # MUST be called by one that was refused or popped once it no
                                        # longer wants to send (caught up, no permits, no consumer)

    wake = gates.next_wake_ns()
    while (sg := gates.pop_ready(now_ns)) is not None:
        # sg.request(now_ns) is None now; send one entry, charge, then request() again or leave().
        # Entry not in memory: sg.defer(now_ns) keeps its turn; request() again when it is loaded.
        # Its wait is over: sg.cause(now_ns) BEFORE the charge tells the cause of that wait finally.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.flow.limits import Dimension, DispatchLimit, Level, Refusal


@dataclass(frozen=True, slots=True)
class BudgetStatistics:
    """One limit in one dimension."""

    dimension: Dimension
    limit: int
    period_ns: int
    delivered_in_window: int
    debt: int
    granted: int
    offered: int
    waiting_ns: int


@dataclass(frozen=True, slots=True)
class GateStatistics:
    """One level of one subject."""

    budgets: tuple[BudgetStatistics, ...]
    waiters: int
    waiters_max: int
    waiting_ns: int
    largest_waiters: tuple[tuple[object, int], ...]


class BrokerGate:
    def topic(self, owner: object = None) -> TopicGate: ...
    def set_limit(self, limit: DispatchLimit | None, now_ns: int) -> None: ...
    def next_wake_ns(self) -> int | None: ...
    def pop_ready(self, now_ns: int) -> SubscriptionGate | None: ...
    def statistics(self, now_ns: int) -> GateStatistics: ...


class TopicGate:
    owner: object
    def subscription(self, owner: object = None) -> SubscriptionGate: ...
    def set_limit(self, limit: DispatchLimit | None, now_ns: int) -> None: ...
    def close(self, now_ns: int) -> None: ...
    def statistics(self, now_ns: int) -> GateStatistics: ...


class SubscriptionGate:
    owner: object
    limited: bool          # any budget at any level applies to it (and it is not exempt)
    exempt: bool           # read-only; set_exempt() changes it
    throttled_events: list[list[int]]   # [level][dimension]; exact after settle(now)
    def set_limit(self, limit: DispatchLimit | None, now_ns: int) -> None: ...
    def set_exempt(self, exempt: bool, now_ns: int) -> None: ...
    def request(self, now_ns: int) -> Refusal | None: ...
    def charge(self, now_ns: int, messages: int, size_bytes: int) -> None: ...
    def leave(self, now_ns: int) -> None: ...
    def defer(self, now_ns: int) -> None: ...
    def close(self, now_ns: int) -> None: ...
    def cause(self, now_ns: int) -> Refusal | None: ...   # present cause of its wait, None if it does not wait
    def settle(self, now_ns: int) -> None: ...            # brings throttled_events up to now within a long wait
    def statistics(self, now_ns: int) -> GateStatistics: ...
