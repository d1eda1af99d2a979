"""A tiny engine in virtual time: everybody who wants to send does so through the gate."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.limits.gate import BrokerGate, TopicGate
from headgate.flow.limits.throttled_events import ThrottledAmounts
from headgate.flow.limits.waiter_gate import WaiterGate

START_NS = 1_234_567_891
"""Not a round instant, so that nothing works only by alignment."""


@dataclass
class Sender:
    """One subscription with entries of a fixed size; ``wanted`` None means endless."""

    name: str
    gate: WaiterGate
    messages: int = 1
    size_bytes: int = 100
    wanted: int | None = 0
    seen: int | None = 0
    """What it wanted when it was last looked at."""
    held_back: ThrottledAmounts = field(default_factory=ThrottledAmounts)
    sent: list[tuple[int, int, int]] = field(default_factory=list)

    def messages_between(self, start_ns: int, end_ns: int) -> int:
        """Messages sent in [start, end)."""
        return sum(m for at_ns, m, _ in self.sent if start_ns <= at_ns < end_ns)

    def count_held_back(self) -> None:
        """The gate refuses: everything that is wanted and may not go is held back."""
        if self.wanted is None:
            return
        amounts = ([m for _, m, _ in self.sent], [size for _, _, size in self.sent])
        each = (self.messages, self.size_bytes)
        for budget in self.gate.refusing():
            waiting = self.wanted * each[budget.dimension]
            self.held_back.count(
                budget.level,
                budget.dimension,
                sent=sum(amounts[budget.dimension]),
                allowed=waiting,
                waiting=waiting,
            )


class Driver:
    """Owns the clock, the gate tree and its senders."""

    def __init__(self, *, late_ms_max: float = 0.0, seed: int = 1) -> None:
        self.now_ns = START_NS
        self.broker = BrokerGate("broker")
        self.topics: dict[str, TopicGate] = {}
        self.senders: dict[str, Sender] = {}
        self._late_ns_max = int(late_ms_max * NS_PER_MS)
        self._random = random.Random(seed)

    def topic(self, name: str) -> TopicGate:
        if name not in self.topics:
            self.topics[name] = self.broker.topic(name)
        return self.topics[name]

    def sender(self, name: str, **settings: int | None) -> Sender:
        """``topic/subscription``, made on first use."""
        if name not in self.senders:
            topic = self.topic(name.partition("/")[0])
            sender = self.senders[name] = Sender(name, topic.waiter(name))
            sender.gate.owner = sender
        sender = self.senders[name]
        for key, value in settings.items():
            setattr(sender, key, value)
        return sender

    def pump(self, sender: Sender) -> None:
        """Send until the gate refuses or nothing is wanted."""
        gate = sender.gate
        while sender.wanted is None or sender.wanted > 0:
            if gate.limited and gate.request(self.now_ns) is not None:
                sender.count_held_back()
                sender.seen = sender.wanted
                return
            if gate.limited:
                gate.charge(self.now_ns, sender.messages, sender.size_bytes)
            sender.sent.append((self.now_ns, sender.messages, sender.size_bytes))
            if sender.wanted is not None:
                sender.wanted -= 1
        sender.seen = sender.wanted
        gate.leave(self.now_ns)

    def run_until(self, end_ns: int) -> None:
        """Serve every wake-up up to ``end_ns``, each late by up to the set time. Who waits is only
        looked at when the gate hands it out."""
        for sender in self.senders.values():
            if sender.wanted != sender.seen:
                self.pump(sender)
        while (wake_ns := self.broker.next_wake_ns()) is not None and wake_ns <= end_ns:
            if wake_ns > self.now_ns:
                late_ns = self._random.randint(0, self._late_ns_max) if self._late_ns_max else 0
                self.now_ns = min(end_ns, wake_ns + late_ns)
            while (gate := self.broker.pop_ready(self.now_ns)) is not None:
                assert isinstance(gate.owner, Sender)
                self.pump(gate.owner)
        self.now_ns = end_ns

    def run(self, seconds: float) -> None:
        self.run_until(self.now_ns + round(seconds * NS_PER_S))


class Log:
    """Amounts over time, summed over any window in O(log n)."""

    def __init__(self, sent: list[tuple[int, int]]) -> None:
        sent = sorted(sent)
        self.times = [at_ns for at_ns, _ in sent]
        self._sums = [0]
        for _, amount in sent:
            self._sums.append(self._sums[-1] + amount)

    def between(self, start_ns: int, end_ns: int) -> int:
        """The amount in [start, end)."""
        return (
            self._sums[bisect_left(self.times, end_ns)]
            - self._sums[bisect_left(self.times, start_ns)]
        )

    def window_max(self, period_ns: int = NS_PER_S) -> int:
        """The largest amount in any window (t - period, t]."""
        return max(
            (
                self._sums[index + 1] - self._sums[bisect_right(self.times, at_ns - period_ns)]
                for index, at_ns in enumerate(self.times)
            ),
            default=0,
        )

    def window_min(self, start_ns: int, end_ns: int, period_ns: int = NS_PER_S) -> int:
        """The smallest amount in windows of one period in [start, end), at many offsets."""
        step_ns = period_ns // 23
        return min(
            self.between(at_ns, at_ns + period_ns)
            for at_ns in range(start_ns, end_ns - period_ns + 1, step_ns)
        )


def messages_log(senders: list[Sender]) -> Log:
    return Log([(at_ns, m) for sender in senders for at_ns, m, _ in sender.sent])


def bytes_log(senders: list[Sender]) -> Log:
    return Log([(at_ns, size) for sender in senders for at_ns, _, size in sender.sent])
