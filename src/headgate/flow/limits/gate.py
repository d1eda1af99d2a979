"""The gate of a broker: a tree of limits in which waiters take fair turns.

The levels of the tree are broker, topic and waiter. In the tree of dispatch limits a waiter is a
subscription, in the tree of publish limits a producer. A tree belongs to one event loop; every
method takes the present instant. An engine uses it like this:

    if gate.limited:                        # False: no limit applies, skip the gate entirely
        refusal = gate.request(now_ns)      # None: send ONE entry; else it waits from now on
    gate.charge(now_ns, messages, bytes)    # at hand-over, all budgets at once (law 1.3)
    gate.request(now_ns)                    # for the next entry, or
    gate.leave(now_ns)                      # it no longer wants to send: caught up, no permits

    wake_ns = gates.next_wake_ns()          # arm one timer
    while (gate := gates.pop_ready(now_ns)) is not None:
        cause = gate.cause(now_ns)          # optional, before the charge: why it waited
        ...                                 # request() is None now: send one entry, charge, then
                                            # request() again, leave(), or defer() if the entry
                                            # is not in memory

The states of a waiter:

    idle ──request refused──► held (own budget; timer) ──► queued (its topic's turns) ──┐
      ▲                         ▲                            ▲                          │ pop_ready
      └──── leave ◄──── active ─┴──── request refused ───────┘ ◄── charge ── claimed ◄──┘

A waiter that its own budget holds is in no queue, so it blocks no other waiter. In the same way, a
topic that its own budget holds is not in the broker's queue. Each joins again at the present
minimum. A waiter that was refused or popped *wants* to send until it leaves; for that time the pace
of its budgets applies.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Final, Protocol

from headgate.flow.limits.budget import Budget
from headgate.flow.limits.fair_share import FairQueue, share_of
from headgate.flow.limits.fair_timers import FairTimers, Timed
from headgate.flow.limits.gate_node import GateNode, GateStatistics
from headgate.flow.limits.rate_limit import Level, RateLimit
from headgate.flow.limits.retired_gates import EndedGates, RetiredGates
from headgate.flow.limits.waiter_gate import WaiterGate

LOOKED_AT_MAX: Final = 1_000
"""Waiters among which the figures of a limit that is shared look for the largest."""


WOKEN_MAX: Final = 64
"""Timers that one look for a waiter handles: tens of thousands may be due at one instant, of
waiters that then have to queue for the limit of their topic."""


class Woken(Timed, Protocol):
    """A node of the tree with a timer."""

    def wake(self, now_ns: int) -> WaiterGate | None:
        """Handle the timer. Returns the waiter that may send now; None if it has to queue."""


class BrokerGate(GateNode):
    """The root: the broker's own limit, the topics' turns and all timers."""

    __slots__ = (
        "_now_ns",
        "_timers",
        "demand",
        "ended",
        "epoch",
        "queue",
        "tenant",
        "tickets",
        "topics",
    )

    def __init__(self, owner: object = None) -> None:
        super().__init__(Level.BROKER, owner)
        self.tenant = ""
        """It has a turn of its own among its timers."""
        self.topics: dict[TopicGate, None] = {}
        self.ended: EndedGates[WaiterGate] = EndedGates()
        """The gates of subscriptions of all topics that are gone, of which a number is kept."""
        self.queue: FairQueue[TopicGate] = FairQueue()
        self.demand = 0
        """Waiters that no budget of their own holds."""
        self.epoch = 1
        """Grows when shares start over; a topic's share counts within one epoch."""
        self.tickets = count(1)
        self._timers: FairTimers[Woken] = FairTimers()
        """A node that shares no limit is served when its timer is due, and its tenant has its
        turn: first come, first served."""
        self._now_ns = 0

    def topic(self, owner: object = None, tenant: str = "") -> TopicGate:
        """Add a topic, which has no own limit yet."""
        topic = TopicGate(self, owner, tenant)
        self.topics[topic] = None
        return topic

    def set_limit(self, limit: RateLimit | None, now_ns: int) -> None:
        """Put the broker-wide limit in force; None for none. O(waiters) if the set of limited
        dimensions changes; :meth:`install` is O(1)."""
        if self.install(limit, now_ns):
            for topic in self.topics:
                topic.set_path(now_ns)
                for waiter in topic.waiters:
                    waiter.refresh_path(now_ns)

    def install(self, limit: RateLimit | None, now_ns: int) -> bool:
        """Put the broker-wide limit in force; None for none. True if its set of dimensions changed.

        Then each topic keeps to the dimensions from before, and is not counted in the new ones,
        until :meth:`TopicGate.install` or :meth:`TopicGate.set_limit`. The topics that have the new
        ones never exceed the limit together, in whatever order the others follow.
        """
        changed = self._install(limit, now_ns)
        if not self.demand:
            self._restart_shares()
        elif changed or self._shares_drifted():
            self.restart_shares()
        if self.alarm:
            self.arm(self, now_ns)
        return changed

    def restart_shares(self) -> None:
        """Restart all shares equal, as parts of the present limit. O(1): a topic notices the new
        epoch when its share is used next."""
        self.epoch += 1
        self._restart_shares()
        self.queue.restart()

    def next_wake_ns(self) -> int | None:
        """When to call :meth:`pop_ready`: at once if the instant is past; None if nothing waits."""
        if self.queue.waiting and not self.alarm:
            return self._now_ns
        return self._timers.first_ns()

    def pop_ready(self, now_ns: int) -> WaiterGate | None:
        """The next waiter in fair order that may send one entry now; None if there is none.

        Send and charge the entry before the next call. Of very many that have to queue first, some
        are left: :meth:`next_wake_ns` then says to call it again at once.
        """
        self._now_ns = now_ns
        for _ in range(WOKEN_MAX):
            node = self._timers.pop_due(now_ns)
            if node is None:
                break
            if (chosen := node.wake(now_ns)) is not None:
                return chosen
        while self.queue.waiting and not self.alarm:
            at_ns = self._refuse(now_ns) if self.budgets else now_ns
            if at_ns > now_ns:
                self.waiters_max = max(self.waiters_max, self.demand)
                self.arm(self, at_ns)
                break
            topic = self.queue.pop()
            if topic is not None and (chosen := topic.choose(now_ns)) is not None:
                return chosen
        return None

    def wake(self, now_ns: int) -> None:
        """Do nothing: :meth:`pop_ready` looks at the queue next."""

    def arm(self, node: Woken, at_ns: int) -> None:
        """Set the timer of ``node``, which replaces an earlier one."""
        self._timers.arm(node, at_ns)

    def join(self, topic: TopicGate, now_ns: int) -> None:
        """Queue a topic by its share of the broker's limit.

        A topic that was ``away``, because no waiter wanted to send or its own budget held it, joins
        again at the present minimum.
        """
        self._now_ns = now_ns
        topic.follow_broker()
        if topic.away:
            topic.away = False
            topic.share = max(topic.share, self.queue.minimum())
        topic.ticket = next(self.tickets)
        self.queue.push(topic.share, topic.ticket, topic)

    def change_demand(self, step: int, now_ns: int) -> None:
        """Count one waiter more (1) or less (-1) for the shared budgets."""
        self.demand += step
        if not self.demand:
            self.epoch += 1
            self.queue.reset()
            self._restart_shares()
            self.alarm = 0
            self._end_waiting(now_ns)

    def statistics(self, now_ns: int) -> GateStatistics:
        """The figures of the broker-wide limit. For its largest waiters it looks at no more than
        :data:`LOOKED_AT_MAX` of those that wait in one queue."""
        topics = islice(self.queue.waiters(), LOOKED_AT_MAX)
        waits = (wait for topic in topics for wait in topic.waits(now_ns))
        return self._gate_statistics(now_ns, self.demand, islice(waits, LOOKED_AT_MAX))


class TopicGate(GateNode):
    """The gate of one topic, with the turns of its waiters."""

    __slots__ = (
        "away",
        "broker",
        "broker_epoch",
        "demand",
        "epoch",
        "queue",
        "retired",
        "share",
        "shared",
        "shares_of",
        "tenant",
        "ticket",
        "waiters",
    )

    def __init__(self, broker: BrokerGate, owner: object, tenant: str) -> None:
        super().__init__(Level.TOPIC, owner)
        self.broker = broker
        self.tenant = tenant
        """Whose turns its timers, and those of its waiters, take."""
        self.waiters: dict[WaiterGate, None] = {}
        self.retired: RetiredGates[WaiterGate] = RetiredGates(broker.ended)
        """The gates of ``waiters`` that closed while their windows still count."""
        self.queue: FairQueue[WaiterGate] = FairQueue()
        self.demand = 0
        """Waiters in the queue, and those just served."""
        self.epoch = 1
        """Grows when shares start over; a waiter's share counts within one epoch."""
        self.share = 0
        """Its share of the broker's limit."""
        self.broker_epoch = 0
        self.away = True
        """Whether it takes no part in the broker's turns."""
        self.ticket = 0
        """The number of its entry in the broker's queue; 0 if none."""
        self.shared: tuple[Budget, ...] = broker.budgets
        """The budgets that its waiters share: its own, then the broker's."""
        self.shares_of: tuple[Budget, ...] = broker.budgets
        """The budgets of which its waiters' shares are parts: its own, else the broker's."""

    def waiter(self, owner: object = None) -> WaiterGate:
        """Add a subscription or producer, which has no own limit yet."""
        waiter = WaiterGate(self, owner)
        self.waiters[waiter] = None
        return waiter

    def set_limit(self, limit: RateLimit | None, now_ns: int) -> None:
        """Put the topic's limit in force, and the broker's; None for none."""
        if self.install(limit, now_ns):
            for waiter in self.waiters:
                waiter.refresh_path(now_ns)

    def install(self, limit: RateLimit | None, now_ns: int) -> bool:
        """:meth:`set_limit` without the waiters. If True, :meth:`WaiterGate.refresh_path` of each
        waiter must follow; until then the waiter keeps to the budgets that it had."""
        self._install(limit, now_ns)
        changed = self.set_path(now_ns)
        if not self.demand:
            self._restart_shares()
        elif self._shares_drifted():
            self.restart_shares()
        if self.alarm:
            self.broker.arm(self, now_ns)
        return changed

    def give_back(self, now_ns: int, messages: int, size_bytes: int) -> None:
        """Take back the last charge: the entry was not delivered."""
        amounts = (messages, size_bytes)
        for budget in self.shared:
            budget.give_back(now_ns, amounts[budget.dimension])
        for node in (self, self.broker):
            if node.alarm:
                self.broker.arm(node, now_ns)

    def close(self, now_ns: int) -> None:
        """Remove the gate of a deleted topic with its waiters. An unloaded topic keeps its gate,
        because a budget outlives an unload (law 1.1)."""
        self.retired.clear(now_ns)
        for waiter in list(self.waiters):
            waiter.close(now_ns)
        self.broker.topics.pop(self, None)

    def set_path(self, now_ns: int) -> bool:
        """Update which budgets the waiters share; returns whether others than before."""
        shared = self.budgets + self.broker.budgets
        if shared == self.shared:
            return False
        self.shared = shared
        shares_of = self.budgets or shared
        if shares_of != self.shares_of:
            self.shares_of = shares_of
            self.restart_shares()
        if self.alarm:
            self.broker.arm(self, now_ns)
        return True

    def follow_broker(self) -> None:
        """Start its shares over if those of the broker's limit did."""
        broker = self.broker
        if self.broker_epoch != broker.epoch:
            self.broker_epoch = broker.epoch
            self.share = broker.queue.base
            if self.demand and not self.budgets:
                self.restart_shares()  # its waiters' shares are parts of the broker's limit, too

    def restart_shares(self) -> None:
        """Restart the shares of all waiters equal. O(1): a waiter notices the new epoch when its
        share is used next."""
        self.epoch += 1
        self._restart_shares()
        self.queue.restart()

    def offer(self, now_ns: int) -> None:
        """Join the broker's queue if a waiter is queued, or wait for the topic's own budget."""
        if self.ticket or self.alarm or not self.queue.waiting:
            return
        at_ns = self._refuse(now_ns)
        if at_ns > now_ns:
            self._hold(at_ns)
        elif self.broker.budgets:
            self.broker.join(self, now_ns)
        else:
            self.away = True
            self.broker.arm(self, now_ns)

    def wake(self, now_ns: int) -> WaiterGate | None:
        """Handle the timer of its own budget."""
        if self.broker.budgets:
            self.offer(now_ns)  # one of many topics that share the broker's limit
            return None
        return self.choose(now_ns) if self.queue.waiting else None

    def _hold(self, at_ns: int) -> None:
        self.away = True
        if self.demand > self.waiters_max:
            self.waiters_max = self.demand
        self.broker.arm(self, at_ns)

    def choose(self, now_ns: int) -> WaiterGate | None:
        """Take the turn: returns the topic's next waiter if the topic's budgets allow an entry.

        None passes the turn on; the topic then joins again when it may.
        """
        self.ticket = 0
        at_ns = self._refuse(now_ns)
        if at_ns > now_ns:
            self._hold(at_ns)
            return None
        while (waiter := self.queue.pop()) is not None:
            if waiter.choose(now_ns) is not None:
                return waiter
        return None

    def charged(self, now_ns: int, messages: int, size_bytes: int) -> None:
        """Count the share of a waiter that was served, and queue again."""
        broker = self.broker
        if broker.budgets:
            self.follow_broker()
            self.share += share_of(broker.budgets, messages, size_bytes)
            broker.queue.served(self.share)
        if self.queue.waiting:
            self.offer(now_ns)

    def change_demand(self, step: int, now_ns: int) -> None:
        """Count one waiter more (1) or less (-1) for the shared budgets."""
        self.demand += step
        self.broker.change_demand(step, now_ns)
        if not self.demand:
            if self.ticket:
                self.ticket = 0
                self.broker.queue.forget()
            self.alarm = 0
            self.away = True
            self.epoch += 1
            self.queue.reset()
            self._restart_shares()
            self._end_waiting(now_ns)

    def statistics(self, now_ns: int) -> GateStatistics:
        """The figures of the topic's limit. For its largest waiters it looks at no more than
        :data:`LOOKED_AT_MAX`: a topic may have 60,000 producers."""
        waits = islice(self.waits(now_ns), LOOKED_AT_MAX)
        return self._gate_statistics(now_ns, self.demand, waits)

    def waits(self, now_ns: int) -> Iterator[tuple[object, int]]:
        """``(owner, nanoseconds since it first wanted to send)`` of each queued waiter."""
        waiters = self.queue.waiters()
        return ((gate.owner, now_ns - gate.wanting_since_ns) for gate in waiters)
