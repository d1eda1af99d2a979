"""The lowest level of the gate, at which a subscription or producer asks to send.

A waiter of dispatch limits is a subscription. A waiter of publish limits is a producer, which has
no own limit. :mod:`headgate.flow.limits.gate` shows the states, and how an engine uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.base.units import NS_PER_MS
from headgate.flow.limits.budget import Budget
from headgate.flow.limits.fair_share import share_of
from headgate.flow.limits.gate_node import GateNode, GateStatistics
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit, Refusal
from headgate.flow.limits.throttled_events import ThrottledEvents

if TYPE_CHECKING:
    from headgate.flow.limits.gate import TopicGate

CAUSE_SLACK_NS = 20 * NS_PER_MS
"""If two levels refuse, the outer one is the cause only if it refuses for this much longer: the gap
between two slices of its pace limits nothing."""
_IDLE, _ACTIVE, _DEFERRED, _CLAIMED, _HELD, _QUEUED = range(6)
# The last two wait: state >= _HELD.


class WaiterGate(GateNode):
    """The gate of one subscription or producer, with its throttled events."""

    __slots__ = (
        "_byte_budgets",
        "_clear_ns",
        "_epoch",
        "_events",
        "_in_topic",
        "_lost_ns",
        "_message_budgets",
        "_path",
        "_share",
        "_state",
        "_turn",
        "_waiting_since_ns",
        "exempt",
        "is_sole",
        "limited",
        "ticket",
        "topic",
        "wanting_since_ns",
    )

    def __init__(self, topic: TopicGate, owner: object) -> None:
        super().__init__(Level.SUBSCRIPTION, owner)
        self.topic = topic
        self.limited = False
        """Whether any budget at any level applies; the engine skips the gate while it is False."""
        self.is_sole = False
        """Whether exactly one budget applies, which is then the cause of every wait."""
        self.exempt = False
        """Whether its entries pass without limit and charge; see :meth:`set_exempt`."""
        self.ticket = 0
        """The number of its entry in its topic's queue; 0 if none."""
        self.wanting_since_ns = 0
        """Since when it has wanted to send without a break; meaningless while it does not."""
        self._state = _IDLE
        self._in_topic = False
        self._share = 0
        self._epoch = 0
        self._turn = 0
        self._clear_ns = -1
        self._waiting_since_ns = 0
        self._events: ThrottledEvents | None = None
        self._path: tuple[Budget, ...] = ()
        self._lost_ns: tuple[int, ...] = ()
        """``lost_ns`` of each budget of the path at the last :meth:`late_ns`, or when the wait
        began."""
        self._message_budgets: tuple[Budget, ...] = ()
        self._byte_budgets: tuple[Budget, ...] = ()
        self.refresh_path(0)

    @property
    def tenant(self) -> str:
        """Whose turns its timers take."""
        return self.topic.tenant

    # -- what the engine calls --------------------------------------------------------------

    def request(self, now_ns: int) -> Refusal | None:
        """Ask to send the next entry.

        None allows it: send one entry and charge it. A refusal names the cause; the waiter waits
        for its fair turn from now on.
        """
        state = self._state
        if state == _CLAIMED or not self.limited:
            return None
        if state >= _HELD:
            return self.cause(now_ns)
        refused = False
        for budget in self._path:
            if budget.in_window < budget.limit and not budget.paced:
                continue  # the first test of release_ns, inlined: this loop is hot
            at_ns = budget.release_ns(now_ns)
            if at_ns > now_ns:
                budget.refused_until_ns = at_ns
                refused = True
        if refused or (self.topic.broker.demand and self._others_first()):
            return self._wait(now_ns)
        if state == _DEFERRED:
            self._state = _ACTIVE
        return None

    def charge(self, now_ns: int, messages: int, size_bytes: int) -> None:
        """Charge an entry that is handed to the connection to every budget that applies."""
        for budget in self._message_budgets:
            budget.charge(now_ns, messages)
        for budget in self._byte_budgets:
            budget.charge(now_ns, size_bytes)
        if self._state == _CLAIMED:
            self._state = _ACTIVE
            self._turn = 0
        if self._in_topic:
            topic = self.topic
            self._share = self._present_share() + share_of(topic.shares_of, messages, size_bytes)
            topic.queue.served(self._share)
            topic.charged(now_ns, messages, size_bytes)

    def leave(self, now_ns: int) -> None:
        """Stop wanting to send; this is cheap if the waiter did not wait."""
        state = self._state
        if state == _IDLE:
            return
        if state >= _HELD:
            self.count_until(now_ns)
            self.alarm = 0
            if self.ticket and self._in_topic:
                self.topic.queue.forget()
            self.ticket = 0
        self._state = _IDLE
        self._turn = 0
        self._leave_topic(now_ns)
        self._end_waiting(now_ns)
        if state == _CLAIMED:
            self.topic.offer(now_ns)

    def defer(self, now_ns: int) -> None:
        """Give way until the entry is in memory, without losing the turn or blocking others.

        Call :meth:`request` again then.
        """
        if self._state == _CLAIMED or self._state == _ACTIVE:
            self._state = _DEFERRED
            self.topic.offer(now_ns)

    def cause(self, now_ns: int) -> Refusal | None:
        """The limit that holds the waiter now; None if it does not wait.

        Between ``pop_ready`` and the charge it is the limit that released last.
        """
        if self._state < _CLAIMED:
            return None
        if len(self._path) == 1:  # the usual case: there is nothing to choose
            only = self._path[0]
            at_ns = only.refused_until_ns
            return Refusal(only.level, only.dimension, at_ns if at_ns > now_ns else now_ns)
        since_ns = self._waiting_since_ns
        latest_ns = now_ns
        named: Budget | None = None
        for budget in self._path:
            at_ns = budget.refused_until_ns
            if at_ns <= since_ns:
                continue
            if named is None or at_ns > named.refused_until_ns + (
                0 if named.level == budget.level else CAUSE_SLACK_NS
            ):
                named = budget
            if at_ns > latest_ns:
                latest_ns = at_ns
        if named is None:
            if not self._path:
                return None
            named = (self.topic.shared or self._path)[0]
        return Refusal(named.level, named.dimension, latest_ns)

    def late_ns(self, cause: Refusal | None) -> int:
        """Time of the wait, since it began or since the last call, that the limit ``cause`` allowed
        and the sender came too late to use."""
        path, before = self._path, self._lost_ns
        lost = tuple([budget.lost_ns for budget in path])
        if cause is None or lost == before:
            return 0
        self._lost_ns = lost
        for budget, then_ns, now_ns in zip(path, before, lost, strict=True):
            if (budget.level, budget.dimension) == (cause.level, cause.dimension):
                return now_ns - then_ns
        return 0

    def refusing(self) -> tuple[Budget, ...]:
        """The budgets that refused since the wait began; each alone would hold the waiter."""
        path, since_ns = self._path, self._waiting_since_ns
        if len(path) == 1 and path[0].refused_until_ns > since_ns:
            return path
        return tuple([budget for budget in path if budget.refused_until_ns > since_ns])

    def close(self, now_ns: int) -> None:
        """Remove the gate for good. If its subscription may return, the gate is retired instead."""
        self.leave(now_ns)
        self.topic.waiters.pop(self, None)

    # -- settings and figures ---------------------------------------------------------------

    def set_limit(self, limit: RateLimit | None, now_ns: int) -> None:
        """Put the waiter's own limit in force; None for none."""
        self._clear_ns = -1
        if self._install(limit, now_ns):
            self.refresh_path(now_ns)
        if self.alarm:
            self.topic.broker.arm(self, now_ns)

    def set_exempt(self, exempt: bool, now_ns: int) -> None:
        """Let entries pass without limit and charge, or stop doing so. The next ``pop_ready``
        returns the waiter if it waits."""
        self.exempt = exempt
        self.refresh_path(now_ns)

    @property
    def throttled_events(self) -> list[list[int]]:
        """Events by level, then dimension; exact after :meth:`count_until`. Do not change them."""
        return [[0, 0], [0, 0], [0, 0]] if self._events is None else self._events.counts

    def renewed(self, now_ns: int) -> WaiterGate:
        """Hand this gate to another subscription: the windows stay, the figures restart at 0."""
        self._events = None
        self.waiters_max = 0
        for budget in self._budget_by_dimension:
            if budget is not None:
                budget.restart_figures(now_ns)
        return self

    def count_until(self, now_ns: int) -> None:
        """Count the throttled events of the present wait up to now."""
        if self._state >= _HELD:
            self._count_delay(now_ns)

    def statistics(self, now_ns: int) -> GateStatistics:
        """The figures of the waiter's own limit."""
        held = self._state == _HELD
        waits = [(self.owner, now_ns - self.wanting_since_ns)] if held else []
        return self._gate_statistics(now_ns, len(waits), waits)

    # -- what the levels above call ----------------------------------------------------------------

    def refresh_path(self, now_ns: int) -> None:
        """Update which budgets apply. If the waiter waits and has no limit any more, the next
        ``pop_ready`` returns it."""
        if self._path:
            self.count_until(now_ns)
        path = () if self.exempt else self.budgets + self.topic.shared
        self._path = path
        self._lost_ns = tuple([budget.lost_ns for budget in path])
        self._message_budgets = tuple(b for b in path if b.dimension == Dimension.MESSAGES)
        self._byte_budgets = tuple(b for b in path if b.dimension == Dimension.BYTES)
        self.limited = bool(path)
        self.is_sole = len(path) == 1
        if not path and self._state != _IDLE:
            waits = self._state >= _HELD
            self.leave(now_ns)
            if waits:
                self._line_up(now_ns)

    def wake(self, now_ns: int) -> WaiterGate | None:
        """Handle the timer of its own budget."""
        if self.exempt or not self.topic.shared:
            return self.choose(now_ns)
        at_ns = self._refuse(now_ns)
        if at_ns > now_ns:
            self.topic.broker.arm(self, at_ns)
        else:
            self._line_up(now_ns)
        return None

    def choose(self, now_ns: int) -> WaiterGate | None:
        """Take the turn: returns the waiter itself, or None if its own budget still refuses."""
        self._turn = self.ticket
        self.ticket = 0
        if self.budgets and self._clear_ns != now_ns and not self.exempt:
            at_ns = self._refuse(now_ns)
            if at_ns > now_ns:
                self._hold(now_ns, at_ns)
                return None
        # Without a limit no charge follows, so the waiter is idle again.
        self._state = _CLAIMED if self._path else _IDLE
        self._count_delay(now_ns)
        return self

    # -- waiting ----------------------------------------------------------------------------

    def _present_share(self) -> int:
        """Its share in its topic's queue, which may have started over."""
        topic = self.topic
        topic.follow_broker()
        if self._epoch != topic.epoch:
            self._epoch, self._share = topic.epoch, topic.queue.base
        return self._share

    def _others_first(self) -> bool:
        """Whether another waiter at a shared budget is served first."""
        topic = self.topic
        broker = topic.broker
        queue = topic.queue
        topic.follow_broker()
        if queue.waiting and (not self._in_topic or queue.precedes(self._present_share())):
            return True
        if not broker.budgets or not broker.queue.waiting:
            return False
        return topic.away or broker.queue.precedes(topic.share)

    def _wait(self, now_ns: int) -> Refusal | None:
        """Begin to wait; :meth:`request` has set ``refused_until_ns`` of each refusing budget."""
        if self._state == _IDLE:
            self.wanting_since_ns = now_ns
        self._waiting_since_ns = now_ns
        self._lost_ns = tuple([budget.lost_ns for budget in self._path])
        own_ns = self._refuse(now_ns) if self.budgets else now_ns
        if own_ns > now_ns:
            self._hold(now_ns, own_ns)
        else:
            if self.budgets:
                self._end_waiting(now_ns)
            self._line_up(now_ns)
        return self.cause(now_ns)

    def _hold(self, now_ns: int, at_ns: int) -> None:
        self._state = _HELD
        self._turn = 0
        self.waiters_max = 1
        if self._in_topic:
            self._leave_topic(now_ns)
        self.topic.broker.arm(self, at_ns)

    def _line_up(self, now_ns: int) -> None:
        """Queue for the shared budgets; the waiter's own budget allows the entry."""
        topic = self.topic
        self._state = _QUEUED
        # The caller has just asked the own budgets, so a claim in the same instant need not.
        self._clear_ns = now_ns
        if self.exempt or not topic.shared:
            topic.broker.arm(self, now_ns)
            return
        self.ticket = ticket = self._turn or next(topic.broker.tickets)
        self._turn = 0
        share = self._present_share()
        if not self._in_topic:
            self._share = share = max(share, topic.queue.minimum())
            self._in_topic = True
            topic.change_demand(1, now_ns)
        topic.queue.push(share, ticket, self)
        topic.offer(now_ns)

    def _leave_topic(self, now_ns: int) -> None:
        if self._in_topic:
            self._in_topic = False
            self.topic.change_demand(-1, now_ns)

    def _count_delay(self, now_ns: int) -> None:
        """Count the events of the wait up to now, for each limiter that refused."""
        since_ns = self._waiting_since_ns
        for budget in self._path:
            until_ns = budget.refused_until_ns
            if until_ns > since_ns:
                if self._events is None:
                    self._events = ThrottledEvents()
                self._events.count_delay(
                    budget, since_ns, until_ns if until_ns < now_ns else now_ns
                )
