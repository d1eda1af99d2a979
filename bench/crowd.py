"""Ten thousand subscriptions at their limits, in simulated time: what the gate alone costs.

Time jumps from one wake-up to the next, rounded up to whole milliseconds as the broker's timers
are, and each subscription that may go is treated as the dispatcher treats it: what made it wait,
may it go, the charge, may the next one go. So the CPU of one simulated second is what the gate
takes of a core in a real one.
"""

from __future__ import annotations

import time
from heapq import heappop, heappush

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.limits.gate import BrokerGate
from headgate.flow.limits.rate_limit import Level, RateLimit

ENTRY_BYTES = 1_024
ONE_A_SECOND = RateLimit(messages=1, bytes=None)


TOPICS_MAX = 100
"""Over which the subscriptions are spread if they are limited themselves."""


class Crowd:
    """``count`` subscriptions with endless backlogs, each held at one message a second."""

    def __init__(self, count: int, level: Level) -> None:
        """Limit each at ``level``: the subscription itself, or its topic, which it has alone."""
        self.broker = BrokerGate()
        self._now_ns = 0
        topics_count = TOPICS_MAX if level is Level.SUBSCRIPTION else count
        topics = [self.broker.topic() for _ in range(topics_count)]
        for index in range(count):
            topic = topics[index % topics_count]
            subscription = topic.waiter()
            limited = subscription if level is Level.SUBSCRIPTION else topic
            # Spread over the second, as backlogs that began at different times.
            self._now_ns = index * NS_PER_S // count
            limited.set_limit(ONE_A_SECOND, self._now_ns)
            subscription.request(self._now_ns)
            subscription.charge(self._now_ns, 1, ENTRY_BYTES)
            subscription.request(self._now_ns)

    def run(self, seconds: int) -> int:
        """Let time pass; return how many messages went."""
        broker, now_ns, went = self.broker, self._now_ns, 0
        end_ns = now_ns + seconds * NS_PER_S
        while (wake_ns := broker.next_wake_ns()) is not None and wake_ns < end_ns:
            now_ns += -(-(wake_ns - now_ns) // NS_PER_MS) * NS_PER_MS
            while (ready := broker.pop_ready(now_ns)) is not None:
                ready.cause(now_ns)
                if ready.request(now_ns) is not None:
                    raise RuntimeError("it was handed out, so it may go")
                ready.charge(now_ns, 1, ENTRY_BYTES)
                if ready.request(now_ns) is None:
                    raise RuntimeError("its limit is one a second")
                went += 1
        self._now_ns = end_ns
        return went


class Timers:
    """The least that a crowd of waiters can cost: a heap with one timer for each."""

    def __init__(self, count: int) -> None:
        self._heap = [(index * NS_PER_S // count, index) for index in range(count)]
        self._end_ns = 0

    def run(self, seconds: int) -> int:
        """Take out and put back whatever is due; return how many were."""
        heap, went = self._heap, 0
        self._end_ns += seconds * NS_PER_S
        while heap[0][0] < self._end_ns:
            at_ns, index = heappop(heap)
            heappush(heap, (at_ns + NS_PER_S, index))
            went += 1
        return went


def core_share(crowd: Crowd | Timers, rounds: int) -> tuple[float, float]:
    """The best of some simulated seconds: percent of a core, and microseconds for each message.
    Others on the machine only ever add to it."""
    best_s, went = float("inf"), 0
    for _ in range(rounds):
        began_s = time.process_time()
        went = crowd.run(1)
        best_s = min(best_s, time.process_time() - began_s)
    return 100 * best_s, 1e6 * best_s / went
