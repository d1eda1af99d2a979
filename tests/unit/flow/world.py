"""Account, gate and verdict together: consumers in virtual time, as the demo builds them.

A consumer has a receiver queue; it returns permits in lumps of half of it, as the official
clients do, and acknowledges in groups of 100 ms. Publishing and processing happen in ticks of
10 ms; deliveries at the gate's own instants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.account.account import Account, Cell, difference, is_hungry, throttled_cell
from headgate.flow.account.verdict import Evidence, Judgement, LimitFact, judge
from headgate.flow.limits.gate import BrokerGate, TopicGate
from headgate.flow.limits.rate_limit import Level, RateLimit, Refusal

TICK_NS = 10 * NS_PER_MS
ACK_TICKS = 10


@dataclass
class Consumer:
    """``rate`` messages a second out of a receiver queue of ``queue``."""

    rate: int
    queue: int = 1000
    permits: int = 0
    received: int = 0
    processed: int = 0
    returned: int = 0
    credit: int = 0


class Situation:
    """One subscription in the world."""

    def __init__(
        self, world: World, topic: TopicGate, publish_per_s: int, consumer: Consumer | None
    ) -> None:
        self.world = world
        self.gate = topic.waiter(self)
        self.publish_per_s = publish_per_s
        self.consumer = consumer
        self.account = Account(world.now_ns, Cell.CAUGHT_UP)
        self.appended = self.sent = self.acked = self._publish_credit = 0
        self.appended_at: list[tuple[int, int]] = []
        self.snapshots: list[dict[str, int | tuple[int, ...]]] = []
        self.age_ns_max = 0
        if consumer is not None:
            consumer.permits = consumer.queue

    def tick(self, index: int) -> None:
        now_ns = self.world.now_ns
        self._publish_credit += self.publish_per_s
        published, self._publish_credit = divmod(self._publish_credit, NS_PER_S // TICK_NS)
        if published:
            self.appended += published
            self.appended_at.append((self.appended, now_ns))
        consumer = self.consumer
        if consumer is not None:
            consumer.credit += consumer.rate
            able, consumer.credit = divmod(consumer.credit, NS_PER_S // TICK_NS)
            consumer.processed += min(able, consumer.received - consumer.processed)
            if consumer.processed - consumer.returned >= consumer.queue // 2:
                consumer.permits += consumer.processed - consumer.returned
                consumer.returned = consumer.processed
            if index % ACK_TICKS == 0:
                self.acked = consumer.processed
        while self.appended_at and self.appended_at[0][0] <= self.acked:
            del self.appended_at[0]
        if self.appended_at:
            self.age_ns_max = max(self.age_ns_max, now_ns - self.appended_at[0][1])
        self.pump()

    def pump(self) -> None:
        """Dispatch as far as permits, backlog and the gate allow, and book the time."""
        now_ns, gate, consumer = self.world.now_ns, self.gate, self.consumer
        cause = gate.cause(now_ns)
        if cause is not None and self.account.cell >= Cell.SUBSCRIPTION_MESSAGES_HUNGRY:
            self.account.reassign(
                throttled_cell(cause.level, cause.dimension, hungry=self._is_hungry())
            )
        refusal = None
        while self.sent < self.appended and consumer is not None and consumer.permits > 0:
            if gate.limited:
                refusal = gate.request(now_ns)
                if refusal is not None:
                    break
                gate.charge(now_ns, 1, 100)
            self.sent += 1
            consumer.received += 1
            consumer.permits -= 1
        if refusal is None:
            gate.leave(now_ns)
        self.account.move(self._cell(refusal), now_ns)

    def _cell(self, refusal: Refusal | None) -> Cell:
        """What of the state law such a subscription can meet."""
        if self.acked == self.appended:
            return Cell.CAUGHT_UP
        if self.sent == self.appended:
            return Cell.AWAITING_ACK
        if self.consumer is None:
            return Cell.NO_CONSUMER
        if not self.consumer.permits:
            return Cell.NO_PERMITS
        assert refusal is not None
        return throttled_cell(refusal.level, refusal.dimension, hungry=self._is_hungry())

    def _is_hungry(self) -> bool:
        return self.consumer is not None and is_hungry(self.consumer.permits, self.consumer.queue)

    def figures(self) -> dict[str, int | tuple[int, ...]]:
        return {
            "at_ns": self.world.now_ns,
            "cells": self.account.snapshot(self.world.now_ns),
            "appended": self.appended,
            "sent": self.sent,
            "acked": self.acked,
        }

    def evidence(self, limits: list[LimitFact], demonstrated: float | None = None) -> Evidence:
        """Of the time between the first and the last mark."""
        marks = self.snapshots
        first, last = marks[0], marks[-1]
        return Evidence(
            window_ns=last["at_ns"] - first["at_ns"],  # type: ignore[operator]
            cells_ns=difference(last["cells"], first["cells"]),  # type: ignore[arg-type]
            backlog_start=first["appended"] - first["acked"],  # type: ignore[operator]
            backlog_end=last["appended"] - last["acked"],  # type: ignore[operator]
            oldest_age_ns_max=self.age_ns_max,
            appended=last["appended"] - first["appended"],  # type: ignore[operator]
            delivered=last["sent"] - first["sent"],  # type: ignore[operator]
            acked=last["acked"] - first["acked"],  # type: ignore[operator]
            unacked_start=first["sent"] - first["acked"],  # type: ignore[operator]
            unacked_end=last["sent"] - last["acked"],  # type: ignore[operator]
            limits=limits,
            sub_windows_ns=[
                difference(b["cells"], a["cells"])  # type: ignore[arg-type]
                for a, b in pairwise(marks)
            ],
            demonstrated_ack_per_s=demonstrated,
        )


@dataclass
class World:
    """Gates, situations and the clock."""

    now_ns: int = 77_777_777
    broker: BrokerGate = field(default_factory=BrokerGate)
    situations: list[Situation] = field(default_factory=list)

    def add(
        self,
        publish_per_s: int,
        consumer: Consumer | None,
        *,
        limit: int | None = None,
        topic: TopicGate | None = None,
    ) -> Situation:
        situation = Situation(self, topic or self.broker.topic(), publish_per_s, consumer)
        if limit is not None:
            situation.gate.set_limit(RateLimit(limit, None), self.now_ns)
        self.situations.append(situation)
        return situation

    def run(self, seconds: int, *, mark_every_s: int = 5) -> None:
        """Let time pass, with a mark at the start and every so many seconds."""
        self._mark()
        start_ns = self.now_ns
        for index in range(1, seconds * NS_PER_S // TICK_NS + 1):
            tick_ns = start_ns + index * TICK_NS
            while (wake_ns := self.broker.next_wake_ns()) is not None and wake_ns < tick_ns:
                self.now_ns = max(self.now_ns, wake_ns)
                while (gate := self.broker.pop_ready(self.now_ns)) is not None:
                    assert isinstance(gate.owner, Situation)
                    gate.owner.pump()
            self.now_ns = tick_ns
            for situation in self.situations:
                situation.tick(index)
            if index * TICK_NS % (mark_every_s * NS_PER_S) == 0:
                self._mark()

    def _mark(self) -> None:
        for situation in self.situations:
            situation.snapshots.append(situation.figures())


def verdict_of(situation: Situation, level: Level | None = None, limit: int = 0) -> Judgement:
    """The law applied to what a situation's account holds."""
    limits = [] if level is None else [LimitFact(level, float(limit), None)]
    return judge(situation.evidence(limits))
