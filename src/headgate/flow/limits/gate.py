"""The gate: limits of waiter, topic and broker, and whose turn it is.

Of dispatch a waiter is a subscription, of publishing a producer; each has a tree of its own. All of
a tree belongs to one loop; every method takes the present instant. How an engine uses it:

    if gate.limited:                        # False: no limit applies, skip the gate entirely
        refusal = gate.request(now_ns)      # None: send ONE entry; else it waits from now on
    gate.charge(now_ns, messages, bytes)    # at hand-over: all budgets at once (law 1.3)
    gate.request(now_ns)                    # for the next entry, or
    gate.leave(now_ns)                      # it no longer wants to send: caught up, no permits

    wake_ns = gates.next_wake_ns()          # arm one timer
    while (gate := gates.pop_ready(now_ns)) is not None:
        cause = gate.cause(now_ns)          # optional, before the charge: what made it wait
        ...                                 # request() is None now: send one entry, charge, then
                                            # request() again, leave(), or defer() if the entry
                                            # is not in memory

Where a waiter stands:

    idle ──request refused──► held (own budget; timer) ──► queued (its topic's turns) ──┐
      ▲                         ▲                            ▲                          │ pop_ready
      └──── leave ◄──── active ─┴──── request refused ───────┘ ◄── charge ── claimed ◄──┘

A waiter that its own budget holds is in no queue, so it blocks nobody; likewise a topic that its
budget holds is out of the broker's queue. Each re-joins at the present minimum. Whoever was
refused or popped is *wanting* until it leaves, which keeps the pace of its budgets on.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

from headgate.flow.limits.budget import Budget
from headgate.flow.limits.fair_share import FairQueue, share_of
from headgate.flow.limits.gate_node import GateNode, GateStatistics
from headgate.flow.limits.rate_limit import Level, RateLimit
from headgate.flow.limits.retired_gates import RetiredGates
from headgate.flow.limits.waiter_gate import WaiterGate


class BrokerGate(GateNode):
    """The root: the broker's own limit, the topics' turns and all timers."""

    __slots__ = ("_now_ns", "_timers", "demand", "epoch", "queue", "tickets", "topics")

    def __init__(self, owner: object = None) -> None:
        super().__init__(Level.BROKER, owner)
        self.topics: dict[TopicGate, None] = {}
        self.queue: FairQueue[TopicGate] = FairQueue()
        self.demand = 0
        """Waiters that their own budgets would let go."""
        self.epoch = 1
        """Topics' shares are remembered while the same waiting goes on."""
        self.tickets = count(1)
        self._timers: list[tuple[int, int, GateNode]] = []
        """When each is due, the number of that arrangement, and who. Whoever shares no limit with
        others goes when it is due: first come, first served."""
        self._now_ns = 0

    def topic(self, owner: object = None) -> TopicGate:
        """A new topic without a limit of its own."""
        topic = TopicGate(self, owner)
        self.topics[topic] = None
        return topic

    def set_limit(self, limit: RateLimit | None, now_ns: int) -> None:
        """Put the broker-wide limit in force, None for none. O(waiters) where the set of
        limited dimensions changes."""
        changed = self._install(limit, now_ns)
        if changed:
            for topic in self.topics:
                topic.refresh_paths(now_ns)
        if not self.demand:
            self._restart_shares()
        elif changed or self._shares_drifted():
            self.restart_shares()
        if self.alarm:
            self.arm(self, now_ns)

    def restart_shares(self) -> None:
        """Everybody who waits begins anew, with the same share of the limit as it is now."""
        self.epoch += 1
        self._restart_shares()
        for topic in self.topics:
            if not topic.away:
                topic.share, topic.broker_epoch = 0, self.epoch
            if not topic.budgets:
                topic.restart_shares()  # its waiters' shares are of this limit, too
        self.queue.restart(self.tickets)

    def next_wake_ns(self) -> int | None:
        """When :meth:`pop_ready` is due; an instant in the past or present means at once, None
        that nobody waits."""
        if self.queue.waiting and not self.alarm:
            return self._now_ns
        timers = self._timers
        while timers and timers[0][2].alarm != timers[0][1]:
            heappop(timers)
        return timers[0][0] if timers else None

    def pop_ready(self, now_ns: int) -> WaiterGate | None:
        """The next waiter in fair order that may send one entry now. Send and charge it before
        the next call; None when there is none."""
        self._now_ns = now_ns
        timers = self._timers
        while timers and timers[0][0] <= now_ns:
            _, alarm, node = heappop(timers)
            if node.alarm == alarm:
                node.alarm = 0
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

    def arm(self, node: GateNode, at_ns: int) -> None:
        """Wake ``node`` at that instant instead of any earlier arrangement."""
        node.alarm = alarm = next(self.tickets)
        heappush(self._timers, (at_ns, alarm, node))

    def join(self, topic: TopicGate, now_ns: int) -> None:
        """Queue a topic by its share of the broker's limit. One that was away, because nobody
        wanted anything of it or its own budget held it, re-joins at the present minimum."""
        self._now_ns = now_ns
        if topic.away:
            topic.away = False
            same = topic.broker_epoch == self.epoch
            topic.share = max(topic.share if same else 0, self.queue.minimum())
            topic.broker_epoch = self.epoch
        topic.ticket = next(self.tickets)
        self.queue.push(topic.share, topic.ticket, topic)

    def change_demand(self, step: int, now_ns: int) -> None:
        """One waiter more (1) or less (-1) waits for shared budgets."""
        self.demand += step
        if not self.demand:
            self.epoch += 1
            self.queue.reset()
            self._restart_shares()
            self.alarm = 0
            self._end_waiting(now_ns)

    def statistics(self, now_ns: int) -> GateStatistics:
        """The broker-wide limit and who waits for it."""
        waits = (wait for topic in self.topics for wait in topic.waits(now_ns))
        return self._gate_statistics(now_ns, self.demand, waits)


class TopicGate(GateNode):
    """One topic: its limit, and the turns of its waiters."""

    __slots__ = (
        "away",
        "broker",
        "broker_epoch",
        "demand",
        "epoch",
        "kept",
        "queue",
        "share",
        "shared",
        "shares_of",
        "ticket",
        "waiters",
    )

    def __init__(self, broker: BrokerGate, owner: object) -> None:
        super().__init__(Level.TOPIC, owner)
        self.broker = broker
        self.waiters: dict[WaiterGate, None] = {}
        self.kept = RetiredGates()
        """Those of ``waiters`` that closed while their windows still count."""
        self.queue: FairQueue[WaiterGate] = FairQueue()
        self.demand = 0
        """Waiters in the queue, and those just served."""
        self.epoch = 1
        """Shares are remembered while the same waiting goes on."""
        self.share = 0
        """Of the broker's limit."""
        self.broker_epoch = 0
        self.away = True
        """Whether it is out of the broker's turns."""
        self.ticket = 0
        """Its place in the broker's queue."""
        self.shared: tuple[Budget, ...] = broker.budgets
        """Budgets its waiters share: its own, then the broker's."""
        self.shares_of: tuple[Budget, ...] = broker.budgets
        """Of which its waiters' shares are: its own, else the broker's."""

    def waiter(self, owner: object = None) -> WaiterGate:
        """A new subscription or producer, without a limit of its own."""
        waiter = WaiterGate(self, owner)
        self.waiters[waiter] = None
        return waiter

    def set_limit(self, limit: RateLimit | None, now_ns: int) -> None:
        """Put the topic's limit in force, None for none."""
        if self._install(limit, now_ns):
            self.refresh_paths(now_ns)
        if not self.demand:
            self._restart_shares()
        elif self._shares_drifted():
            self.restart_shares()
        if self.alarm:
            self.broker.arm(self, now_ns)

    def give_back(self, now_ns: int, messages: int, size_bytes: int) -> None:
        """What was charged last was not handed over after all."""
        amounts = (messages, size_bytes)
        for budget in self.shared:
            budget.give_back(now_ns, amounts[budget.dimension])
        for node in (self, self.broker):
            if node.alarm:
                self.broker.arm(node, now_ns)

    def close(self, now_ns: int) -> None:
        """The topic is deleted, with all its waiters. Not for unload: a budget must
        outlive that (law 1.1), so keep the gate for when the topic is loaded again."""
        for waiter in list(self.waiters):
            waiter.close(now_ns)
        self.broker.topics.pop(self, None)

    def refresh_paths(self, now_ns: int) -> None:
        """The set of budgets above changed: write it down where it is read often."""
        self.shared = self.budgets + self.broker.budgets
        for waiter in self.waiters:
            waiter.refresh_path(now_ns)
        shares_of = self.budgets or self.shared
        if shares_of != self.shares_of:
            self.shares_of = shares_of
            self.restart_shares()

    def restart_shares(self) -> None:
        """Everybody who waits begins anew, with the same share."""
        self.epoch += 1
        self._restart_shares()
        for waiter in self.waiters:
            waiter.restart_share(self.epoch)
        self.queue.restart(self.broker.tickets)

    def offer(self, now_ns: int) -> None:
        """Its queue has somebody: go to the broker's queue, or wait for its own budget."""
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
        """Its own budget was to release it now."""
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
        """The topic is up: its next waiter, if its budgets let it go now. None hands the
        turn on; the topic has then seen to its own return."""
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
        """One of its waiters was served: count its share and queue again."""
        broker = self.broker
        if broker.budgets:
            self.share += share_of(broker.budgets, messages, size_bytes)
            broker.queue.served(self.share)
        if self.queue.waiting:
            self.offer(now_ns)

    def change_demand(self, step: int, now_ns: int) -> None:
        """One waiter more (1) or less (-1) waits for shared budgets."""
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
        """The topic's limit and who waits for it."""
        return self._gate_statistics(now_ns, self.demand, self.waits(now_ns))

    def waits(self, now_ns: int) -> list[tuple[object, int]]:
        """Owners in its queue and for how many nanoseconds each has wanted to send."""
        return [(gate.owner, now_ns - gate.wanting_since_ns) for gate in self.queue.waiters()]
