"""A simulation of adaptive publish throttling that treats messages as a flow of bytes.

The laws run as in the broker, one cycle an interval. A few numbers describe each topic: the demand
of its producers, the capacity of its consumers, its quota. The simulation shows what a law does
under a load a thousand times faster than a broker.

The limit is the worst that law 3.2 allows: all that any second has room for goes at once. What was
accepted under a higher one counts in proportion (law 3.3).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headgate.base.units import MIB, NS_PER_MS, NS_PER_S
from headgate.flow.adaptive.cycle import (
    AdaptiveSettings,
    Cycle,
    Decision,
    DecisionKind,
    MemoryRule,
    PublishLimit,
    TopicSignals,
)
from headgate.flow.adaptive.memory_share import MemoryAttribution
from headgate.flow.adaptive.pressure import memory_pressure, quota_use
from headgate.flow.adaptive.topic import TopicControl
from headgate.flow.quota.backlog_quota import RELEASE_PERCENT

STEP_NS: Final = 50 * NS_PER_MS
STEP_MS: Final = STEP_NS // NS_PER_MS
STEP_S: Final = STEP_NS / NS_PER_S
STEPS_PER_S: Final = NS_PER_S // STEP_NS
PARKED_BYTES_MAX: Final = 8 * MIB
"""Waiting messages up to this size are in the broker's memory; the clients hold the rest."""


class Profile:
    """A rate that changes in steps: bytes a second."""

    def __init__(self, steps: Sequence[tuple[float, float]]) -> None:
        """``steps``: pairs of a start in seconds and the rate from then on, in order, from 0."""
        self._from_s = [at_s for at_s, _ in steps]
        self._rates = [rate for _, rate in steps]

    def then(self, at_s: float, rate: float) -> Profile:
        """The same until ``at_s``, and ``rate`` from then on."""
        steps = zip(self._from_s, self._rates, strict=True)
        return Profile([*(step for step in steps if step[0] < at_s), (at_s, rate)])

    @property
    def changes_s(self) -> list[float]:
        """The seconds at which the rate changes."""
        return self._from_s[1:]

    @property
    def largest(self) -> float:
        """The highest rate."""
        return max(self._rates)

    def at(self, second: float) -> float:
        """The rate that holds then."""
        return self._rates[bisect_right(self._from_s, second) - 1]


class Look(NamedTuple):
    """A topic after one step."""

    second: float
    published: float
    """Bytes a second, in this step."""
    backlog_bytes: float
    age_ms: int
    """Of the oldest byte that is not acknowledged; -1 without one."""
    parked_bytes: float
    limit: PublishLimit | None


@dataclass
class PlantTopic:
    """One topic: its load and what the simulation measured."""

    demand: Profile
    capacity: Profile
    """Bytes a second that its consumers can take."""
    size_limit: int | None = None
    age_limit_ms: int | None = None
    holds: bool = True
    """Whether the size quota itself stops producers at the append (law 4.2)."""
    message_bytes: int = 1_000
    acknowledges_every_s: float = STEP_S
    """Interval at which consumers acknowledge all that they received."""
    pent_up_s: float = 2.0
    """Seconds of demand that waits at most; beyond that, producers stop sending."""
    control: TopicControl = field(default_factory=TopicControl)
    decisions: list[tuple[float, Decision]] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    accepted: float = 0.0
    done: float = 0.0
    backlog: float = 0.0
    """Bytes not yet acknowledged."""
    parked: float = 0.0
    staged: float = 0.0
    """Bytes that the disk has not yet taken."""
    held_s: float = 0.0
    """Seconds in which the quota stopped producers."""
    waited_s: float = 0.0
    """Seconds in which messages waited."""
    wasted_bytes: float = 0.0
    """Capacity that consumers left unused while producers waited."""
    offered_bytes: float = 0.0
    """Capacity of the consumers while producers waited."""
    limit: PublishLimit | None = None
    _window: deque[float] = field(default_factory=lambda: deque([0.0] * STEPS_PER_S))
    """What each step of the last second counts under the limit."""
    _accepted: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=STEPS_PER_S))
    """Bytes accepted in each step, and the limit in force then."""
    _in_window: float = 0.0
    _counts_for: PublishLimit | None = None
    """The limit for which the window counts."""
    _delivered: float = 0.0
    _since_ack_s: float = 0.0
    _is_held: bool = False
    _was_parked: bool = False
    _was_slowed: bool = False
    _seen: int = 0
    _accepted_by_step: list[float] = field(default_factory=list)
    _oldest_step: int = 0

    @property
    def activations(self) -> int:
        """Number of limits that began."""
        return sum(d.kind is DecisionKind.ACTIVATED for _, d in self.decisions)

    @property
    def disturbances(self) -> int:
        """Changes of demand or capacity, counting the start as one."""
        return 1 + len({*self.demand.changes_s, *self.capacity.changes_s})

    @property
    def held_bytes(self) -> int:
        """Bytes of the broker's memory that the topic takes."""
        return round(self.staged + min(self.parked, PARKED_BYTES_MAX))

    def use(self, look: Look) -> float:
        """The part of its quota in use at that step; 0 without a quota."""
        return max(
            quota_use(round(look.backlog_bytes), self.size_limit),
            quota_use(look.age_ms, self.age_limit_ms),
        )

    def step(self, second: float) -> float:
        """Advance by :data:`STEP_S` and return the bytes published."""
        demand = self.demand.at(second)
        wanted = self.parked + demand * STEP_S
        self._in_window -= self._window.popleft()
        allowed, limit_bytes = wanted, 0.0
        if self.limit is not None:
            limit_bytes = self._limit_bytes(self.limit)
            if self.limit is not self._counts_for:
                self._count_for(self.limit, limit_bytes)
            allowed = min(allowed, max(0.0, limit_bytes - self._in_window))
            self._was_slowed = self._was_slowed or allowed < wanted
        if self.holds and self.size_limit is not None:
            low = self.size_limit * RELEASE_PERCENT / 100
            self._is_held = self.backlog > low if self._is_held else self.backlog >= self.size_limit
            if self._is_held:
                allowed = 0.0
                self.held_s += STEP_S
            allowed = min(allowed, max(0.0, self.size_limit - self.backlog))
        self._window.append(allowed)
        self._accepted.append((allowed, limit_bytes))
        self._in_window += allowed
        self.accepted += allowed
        self.backlog += allowed
        self.parked = min(wanted - allowed, max(demand * self.pent_up_s, 0.0))
        waits = wanted - allowed > 1.0
        self._was_parked = self._was_parked or waits
        self._consume(second, waits)
        self._accepted_by_step.append(self.accepted)
        published = allowed / STEP_S
        age_ms = self._age_ms()
        self.looks.append(Look(second, published, self.backlog, age_ms, self.parked, self.limit))
        return allowed

    def _age_ms(self) -> int:
        by_step = self._accepted_by_step
        while self._oldest_step < len(by_step) and by_step[self._oldest_step] <= self.done + 1e-6:
            self._oldest_step += 1
        return (len(by_step) - self._oldest_step) * STEP_MS or -1

    def _consume(self, second: float, waits: bool) -> None:
        able = self.capacity.at(second) * STEP_S
        left = self.accepted - self._delivered
        delivered = min(left, able)
        self._delivered += delivered
        if waits:
            self.waited_s += STEP_S
            self.offered_bytes += able
            self.wasted_bytes += able - delivered
        self._since_ack_s += STEP_S
        if self._since_ack_s >= self.acknowledges_every_s - 1e-9:
            self._since_ack_s = 0.0
            self.done = self._delivered
            self.backlog = self.accepted - self.done

    def _limit_bytes(self, limit: PublishLimit) -> float:
        amounts = []
        if limit.bytes_per_s is not None:
            amounts.append(float(limit.bytes_per_s))
        if limit.messages_per_s is not None:
            amounts.append(float(limit.messages_per_s * self.message_bytes))
        return min(amounts)

    def _count_for(self, limit: PublishLimit, limit_bytes: float) -> None:
        """Count the window under a new limit. The oldest step has just left it."""
        steps = list(self._accepted)[1 - STEPS_PER_S :]
        counts = [size * min(1.0, limit_bytes / then) if then else size for size, then in steps]
        self._window = deque([*[0.0] * (STEPS_PER_S - 1 - len(counts)), *counts])
        self._in_window = sum(counts)
        self._counts_for = limit

    def cycle(self, second: float, cycle: Cycle, attribution: MemoryAttribution) -> None:
        """Evaluate the topic in a controller cycle, if it needs it."""
        messages = int(self.accepted) // self.message_bytes
        if messages == self._seen and not self.control.needs_evaluation:
            return
        signals = TopicSignals(
            messages=messages,
            bytes=messages * self.message_bytes,
            was_parked=self._was_parked,
            was_slowed=self._was_slowed,
            backlog_bytes=round(self.backlog),
            size_limit=self.size_limit,
            age_ms=self.looks[-1].age_ms,
            age_limit_ms=self.age_limit_ms,
            done_bytes=round(self.done),
        )
        self._seen = messages
        self._was_parked = self._was_slowed = False
        pressure = attribution.pressure_on(self.control.memory_baseline, self.held_bytes)
        rule = attribution.rule_on(pressure)
        decision = self.control.evaluate(signals, cycle, pressure, rule)
        if decision is not None:
            self.decisions.append((second, decision))
        if self.limit is None:
            # A limit where none was begins with an empty window (law 1.5).
            self._window, self._in_window = deque([0.0] * STEPS_PER_S), 0.0
            self._accepted.clear()
        self.limit = self.control.limit


@dataclass
class Plant:
    """Topics that share a controller, a disk and the broker's memory."""

    topics: list[PlantTopic]
    settings: AdaptiveSettings = field(default_factory=AdaptiveSettings)
    disk: Profile = field(default_factory=lambda: Profile([(0.0, float("inf"))]))
    """Bytes a second that the disk writes."""
    memory_base: Profile = field(default_factory=lambda: Profile([(0.0, 0.0)]))
    """Bytes that the broker uses besides what topics hold."""
    memory_limit: int = 1 << 30
    late_ns: Callable[[], int] = lambda: 0
    """Delay of the next cycle."""
    attribution: MemoryAttribution = field(default_factory=MemoryAttribution)
    turned: list[tuple[float, MemoryRule]] = field(default_factory=list)
    """Seconds at which the controller began and stopped to slow all topics, each with its rule."""
    pressures: list[float] = field(default_factory=list)
    """Memory pressure in each cycle."""
    memory_max: float = 0.0
    memory_shares: list[float] = field(default_factory=list)
    """Part of the memory limit in use at the end of each second."""
    _now_ns: int = 0
    _cycled_ns: int = 0
    _due_ns: int = 0

    def run(self, seconds: float) -> None:
        """Simulate so many seconds."""
        for _ in range(round(seconds * STEPS_PER_S)):
            self._now_ns += STEP_NS
            second = self._now_ns / NS_PER_S
            for topic in self.topics:
                topic.staged += topic.step(second)
            self._write(self.disk.at(second) * STEP_S)
            used = self.memory_bytes(second)
            self.memory_max = max(self.memory_max, used)
            if self._now_ns % NS_PER_S == 0:
                self.memory_shares.append(used / self.memory_limit)
            if self._now_ns >= self._due_ns:
                self._cycle(second)

    def memory_bytes(self, second: float) -> float:
        """Bytes of memory that the broker uses."""
        return self.memory_base.at(second) + sum(topic.held_bytes for topic in self.topics)

    def _write(self, able: float) -> None:
        """Write staged bytes; each topic gets its share of the disk."""
        staged = sum(topic.staged for topic in self.topics)
        left = max(0.0, 1.0 - able / staged) if staged else 0.0
        for topic in self.topics:
            topic.staged *= left

    def _cycle(self, second: float) -> None:
        used = round(self.memory_bytes(second))
        pressure = memory_pressure(used, self.memory_limit, self.settings)
        self.pressures.append(pressure)
        turned = self.attribution.begin_cycle(
            pressure,
            used / self.memory_limit,
            self._now_ns,
            is_enforced=not self.settings.observe_only,
        )
        if turned is not None:
            self.turned.append((second, turned))
        elapsed_ns = self._now_ns - self._cycled_ns or self.settings.interval_ns
        cycle = Cycle(self.settings, self._now_ns, elapsed_ns)
        for topic in self.topics:
            topic.cycle(second, cycle, self.attribution)
        self._cycled_ns = self._now_ns
        self._due_ns = self._now_ns + self.settings.interval_ns + self.late_ns()
