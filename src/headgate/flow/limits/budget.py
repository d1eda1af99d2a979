"""One limit in one dimension: a sliding log of deliveries, a debt and a pace.

Law 1.1: in any window of one period, a budget delivers at most its limit plus one entry. The log
keeps the deliveries of the last period in slots. A slot expires one period after its *last* amount,
so merging amounts can only delay their expiry. Three rules decide about the next entry:

* **window**: the entry may go while the window holds less than the limit and no debt is open (1.6).
* **debt**: an entry that exceeds the limit leaves its excess as a debt. Whenever an amount expires,
  the debt takes that room at once, as if that part of the entry were delivered only then.
* **pace**: while something waits, deliveries come in slices (1.2). ``_paid_ns`` is the instant up
  to which the rate of the limit is used. An entry of n advances it by n/limit of a period, exactly
  (the fraction is carried). It never lags more than 20 ms behind the present, so a longer stall is
  not caught up. When it passes the present, the slice ends. The next slice opens one slice later,
  or when a large entry is paid for.

While nothing waits, a budget has no pace: what fits the window goes at once.

    slots     gap|gap|gap|...      4 bytes each, time since the slot before, in ticks
              amount|amount|...    8 bytes each
    _head_ns  time of the oldest slot          _tail_ns  time of the youngest

A slot is 4 ms wide; in a period of more than 0.96 s it is 1/240 of the period. (A long period
therefore loses up to 0.42 % of its limit; the law allows 0.5 %.) While there are few slots, the
parts of a debt get slots of their own. All numbers are integers, so nothing drifts.

If the limit changed within the last period, ``in_window`` and ``debt`` are what the amounts count
under the present limit (law 1.5): :mod:`headgate.flow.limits.past_limits` computes them. The slots
keep the amounts that were delivered.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from headgate.base.units import NS_PER_MS
from headgate.flow.limits.past_limits import PastLimits
from headgate.flow.limits.rate_limit import Dimension, Level

SLICE_NS_MAX = 8 * NS_PER_MS
"""Time between two slices; a hundredth of the period if that is shorter. With 10 ms, wake-ups that
are 1 ms late merge slices, and a second may miss 2 %; with 8 ms it misses at most 1.6 %."""
SLICES_PER_PERIOD = 100
CREDIT_HALF_SLICES = 5
"""The most that one slice delivers, in half slices: 20 ms of the limit. So the budget catches up
after a stall of up to 10 ms and a late wake-up, and after no longer stall."""
CREDIT_NS_MAX = SLICE_NS_MAX * CREDIT_HALF_SLICES // 2
SLOTS_PER_PERIOD_MAX = 240
COMPACT_AFTER = 16
"""Expired slots stay at the front of the arrays until there are this many, or until all of several
are expired. A single slot is overwritten: a limit of one message a second would otherwise free and
allocate its memory with each message."""
_GAP_BITS = 31
"""Two slots are at most so many doublings of a tick apart, which is at least a period."""


@dataclass(frozen=True, slots=True)
class BudgetStatistics:
    """The figures of one limit in one dimension.

    ``delivered_in_window`` and ``debt`` are messages or bytes as they count under the present
    limit: what was delivered under a higher limit counts less. ``granted`` is the total ever
    delivered. ``waiting_ns`` is how long something waited for the limit, and ``offered`` is what
    the limit allowed in that time. Compared with what was granted meanwhile, it shows how well the
    limit was used.
    """

    dimension: Dimension
    limit: int
    period_ns: int
    delivered_in_window: int
    debt: int
    granted: int
    offered: int
    waiting_ns: int


class Budget:
    """One limit with its window. Amounts are messages or bytes; instants are nanoseconds."""

    __slots__ = (
        "_amounts",
        "_cached_at_ns",
        "_cached_release_ns",
        "_credit_ns",
        "_first",
        "_gaps",
        "_head_ns",
        "_offered_ns",
        "_paid_ns",
        "_paid_rest",
        "_past",
        "_slice_ns",
        "_slot_ns",
        "_tail_ns",
        "_tick_ns",
        "_waiting_ns",
        "_waiting_since_ns",
        "debt",
        "dimension",
        "granted",
        "in_window",
        "level",
        "limit",
        "lost_ns",
        "pace_open_ns",
        "paced",
        "period_ns",
        "refused_until_ns",
        "share_limit",
    )

    def __init__(
        self, limit: int, period_ns: int, level: Level, dimension: Dimension, now_ns: int
    ) -> None:
        self.level = level
        self.dimension = dimension
        self.limit = limit
        self.share_limit = limit
        """The limit when the present wait began: fair shares are parts of it."""
        self.in_window = 0
        """What the present window counts; never above the largest limit that was in force in it."""
        self.debt = 0
        """What was delivered beyond the limit and has not yet taken the room of expired amounts."""
        self.granted = 0
        """The total ever charged."""
        self.lost_ns = 0
        """Time whose part of the limit is lost: the limit allowed a waiter to send, and the sender
        came too late to catch up."""
        self.paced = False
        """Whether something waits for this budget, so that the pace applies."""
        self.pace_open_ns = now_ns
        self.refused_until_ns = 0
        """The release that the last refusal announced; the gate updates it."""
        self._cached_at_ns = -1
        """The instant for which :meth:`release_ns` cached its result; -1 if something happened
        since."""
        self._cached_release_ns = now_ns
        self._gaps = array("I")
        self._amounts = array("q")
        self._first = 0
        self._head_ns = self._tail_ns = now_ns
        self._paid_ns = now_ns
        self._paid_rest = 0
        self._past: PastLimits | None = None
        """What the window counts, if part of it was delivered under another limit; else None."""
        self._waiting_ns = 0
        self._waiting_since_ns = now_ns
        self._offered_ns = 0
        self._set_period(period_ns)

    def _set_period(self, period_ns: int) -> None:
        self.period_ns = period_ns
        self._slice_ns = min(SLICE_NS_MAX, max(1, period_ns // SLICES_PER_PERIOD))
        self._set_credit()
        self._slot_ns = max(self._slice_ns // 2, -(-period_ns // SLOTS_PER_PERIOD_MAX))
        self._tick_ns = (period_ns >> _GAP_BITS) + 1

    def _set_credit(self) -> None:
        # For the usual periods and limits this is one shared int: 32 bytes less for each budget.
        self._credit_ns = min(CREDIT_NS_MAX, self._slice_ns * CREDIT_HALF_SLICES // 2)
        if self.limit * self._credit_ns < self.period_ns:
            # One entry: a waiter that is released during the turns of others loses nothing.
            self._credit_ns = self.period_ns // self.limit

    # -- deciding ---------------------------------------------------------------------------

    def release_ns(self, now_ns: int) -> int:
        """The first instant at which the next entry may go, if nothing else is charged until then;
        ``now_ns`` if it may go now."""
        if now_ns == self._cached_at_ns:
            return self._cached_release_ns
        limit = self.limit
        if self.in_window >= limit and self._head_ns + self.period_ns <= now_ns:
            self._expire(now_ns)
        at_ns = now_ns
        # If there is room already, expiring amounts can only add to it.
        if self.in_window >= limit:
            if (
                not self.debt
                and self._past is None
                and self.in_window - self._amounts[self._first] < limit
            ):
                at_ns = self._head_ns + self.period_ns  # the oldest slot makes room enough
            else:
                at_ns = self._room_opens_ns()
            if self.paced and self._paid_ns < at_ns - self._credit_ns:
                # A full window is no stall: the credit is one slice, to which only a late wake-up
                # adds. A larger burst would come back with every period.
                self._paid_ns = at_ns - self._slice_ns
                self._paid_rest = 0
        elif self.paced and self._paid_ns < now_ns - self._credit_ns:
            self._forfeit(now_ns)
        if self.paced and self.pace_open_ns > at_ns:
            at_ns = self.pace_open_ns
        self._cached_at_ns = now_ns
        self._cached_release_ns = at_ns
        return at_ns

    def _room_opens_ns(self) -> int:
        """When the window has room again; it has none now. While a debt is open, each period takes
        one whole limit of it and repeats the same slots one period later."""
        if self._past is not None:
            periods, needed = self._past.until_room()
        else:
            periods, rest = divmod(self.debt, self.limit)
            needed = self.in_window - self.limit + rest + 1
        amounts, index, at_ns = self._amounts, self._first, self._head_ns
        needed -= amounts[index]
        while needed > 0:
            index += 1
            at_ns += self._gaps[index] * self._tick_ns
            needed -= amounts[index]
        return at_ns + (periods + 1) * self.period_ns

    # -- charging ---------------------------------------------------------------------------

    def charge(self, now_ns: int, amount: int) -> None:
        """Count an entry of ``amount`` that is delivered now, even if it had to wait."""
        self._cached_at_ns = -1
        if self.in_window and self._head_ns + self.period_ns <= now_ns:
            self._expire(now_ns)
        self.granted += amount
        room = self.limit - self.in_window
        logged = amount
        if amount > room:
            logged = room if room > 0 else 0
            self.debt += amount - logged
        if self._past is None:
            self.in_window += logged
        else:
            self._past.charged(logged, amount - logged)
            self.in_window, self.debt = self._past.in_window, self._past.debt
        if logged:
            if self._first == len(self._amounts):
                self._begin_log(now_ns, logged)
            elif now_ns <= self._tail_ns:
                self._amounts[-1] += logged
            else:
                self._log(now_ns, logged, now_ns // self._slot_ns == self._tail_ns // self._slot_ns)
        if self.paced:
            if self._paid_ns < now_ns - self._credit_ns:
                self._forfeit(now_ns)
            paid_ns = self._paid_ns
            steps, self._paid_rest = divmod(amount * self.period_ns + self._paid_rest, self.limit)
            self._paid_ns = paid_ns = paid_ns + steps
            if paid_ns > now_ns:
                # Count from when this slice could have begun, so that late wake-ups do not add up.
                opened_ns = self.pace_open_ns
                if now_ns - opened_ns >= self._slice_ns:
                    opened_ns = now_ns
                next_slice_ns = opened_ns + self._slice_ns
                self.pace_open_ns = paid_ns if paid_ns > next_slice_ns else next_slice_ns

    def _forfeit(self, now_ns: int) -> None:
        """Give up the part of the limit that a long stall left unused."""
        self.lost_ns += now_ns - self._credit_ns - self._paid_ns
        self._paid_ns = now_ns - self._credit_ns
        self._paid_rest = 0

    def give_back(self, now_ns: int, amount: int) -> None:
        """Take back ``amount`` of the last charge: that entry was not delivered."""
        self._cached_at_ns = -1
        if self.in_window:
            self._expire(now_ns)
        self.granted -= amount
        past = self._past
        owed, held = (self.debt, self.in_window) if past is None else (past.owed, past.held)
        left = amount - min(owed, amount)
        owed -= amount - left
        held_before = held
        while left and held:
            part = min(left, self._amounts[-1])
            self._amounts[-1] -= part
            held -= part
            left -= part
            if not self._amounts[-1] and held:
                self._amounts.pop()
                self._tail_ns -= self._gaps.pop() * self._tick_ns
        if past is None:
            self.debt, self.in_window = owed, held
        else:
            past.owed = owed
            past.given_back(held_before - held)
            self._count(past)
        if not held:
            self._empty()
        self._paid_ns -= amount * self.period_ns // self.limit
        self.pace_open_ns = min(self.pace_open_ns, now_ns)

    def _begin_log(self, at_ns: int, amount: int) -> None:
        """Write the first slot of an empty log."""
        if len(self._amounts) == 1:
            self._amounts[0] = amount
        else:
            del self._gaps[:], self._amounts[:]
            self._gaps.append(0)
            self._amounts.append(amount)
        self._first = 0
        self._head_ns = self._tail_ns = at_ns

    def _log(self, at_ns: int, amount: int, merge: bool) -> None:
        """Append to the log; ``at_ns`` is not before its tail. A merged slot moves on to ``at_ns``:
        an amount that expires later than it could breaks no window."""
        gaps, amounts = self._gaps, self._amounts
        if self._first == len(amounts):
            self._begin_log(at_ns, amount)
            return
        ticks = -((self._tail_ns - at_ns) // self._tick_ns)
        self._tail_ns += ticks * self._tick_ns
        if merge:
            amounts[-1] += amount
            if self._first == len(amounts) - 1:
                self._head_ns = self._tail_ns
            else:
                gaps[-1] += ticks
        else:
            gaps.append(ticks)
            amounts.append(amount)

    def _expire(self, now_ns: int) -> None:
        """Drop the amounts that have left the window, oldest first; an open debt takes the room."""
        if self._past is not None:
            self._expire_past(self._past, now_ns)
            return
        period_ns, tick_ns = self.period_ns, self._tick_ns
        if self.debt >= self.limit == self.in_window:
            # Whole periods of debt repeat the same slots: skip them in one step.
            periods = min(self.debt // self.limit, max(0, now_ns - self._tail_ns) // period_ns)
            self.debt -= periods * self.limit
            self._head_ns += periods * period_ns
            self._tail_ns += periods * period_ns
        amounts = self._amounts
        while self.in_window and self._head_ns + period_ns <= now_ns:
            expired_ns = self._head_ns + period_ns
            self.in_window -= amounts[self._first]
            self._first += 1
            if self._first < len(amounts):
                self._head_ns += self._gaps[self._first] * tick_ns
            if self.debt and self.in_window < self.limit:
                taken = min(self.debt, self.limit - self.in_window)
                self.debt -= taken
                self.in_window += taken
                self._log_owed(expired_ns, taken)
        self._compact()

    def _expire_past(self, past: PastLimits, now_ns: int) -> None:
        """:meth:`_expire` while not all amounts count in full."""
        period_ns, tick_ns, amounts = self.period_ns, self._tick_ns, self._amounts
        while self._first < len(amounts) and self._head_ns + period_ns <= now_ns:
            if past.owed:
                periods = past.repeat(max(0, now_ns - self._tail_ns) // period_ns)
                self._head_ns += periods * period_ns
                self._tail_ns += periods * period_ns
                if self._head_ns + period_ns > now_ns:
                    break
            expired_ns = self._head_ns + period_ns
            past.expired(amounts[self._first])
            self._first += 1
            if self._first < len(amounts):
                self._head_ns += self._gaps[self._first] * tick_ns
            taken = past.take_room()
            if taken:
                self._log_owed(expired_ns, taken)
        self._count(past)
        self._compact()

    def _count(self, past: PastLimits) -> None:
        """Take over from ``past`` what the window and the debt count."""
        self.in_window, self.debt = past.in_window, past.debt
        self._past = None if past.all_under_present_limit else past

    def _log_owed(self, expired_ns: int, taken: int) -> None:
        """Log the part of a debt that took the room which opened at ``expired_ns``."""
        at_ns = max(expired_ns, self._tail_ns)
        many = len(self._amounts) - self._first >= SLOTS_PER_PERIOD_MAX // 2
        self._log(at_ns, taken, many and at_ns // self._slot_ns == self._tail_ns // self._slot_ns)

    def _compact(self) -> None:
        amounts, first = self._amounts, self._first
        if first == len(amounts) > 1:
            self._empty()
        elif first >= COMPACT_AFTER:
            del self._gaps[:first], amounts[:first]
            self._first = 0

    def _empty(self) -> None:
        """Drop the log. The arrays are new, because an array that shrinks by little keeps its
        memory."""
        self._gaps, self._amounts, self._first = array("I"), array("q"), 0

    # -- waiting ----------------------------------------------------------------------------

    def begin_waiting(self, now_ns: int, release_ns: int) -> None:
        """Apply the pace from now on: something waits, refused until ``release_ns``. The credit
        begins there with one slice."""
        if not self.paced:
            self.paced = True
            self._cached_at_ns = -1
            self._waiting_since_ns = self.pace_open_ns = now_ns
            self._paid_ns = release_ns - self._slice_ns
            self._paid_rest = 0

    def end_waiting(self, now_ns: int) -> None:
        """Stop applying the pace: nothing waits any more."""
        if self.paced:
            self._count_wait(now_ns)
            self.paced = False
            self._cached_at_ns = -1

    def _count_wait(self, now_ns: int) -> None:
        if self.paced:
            waited_ns = now_ns - self._waiting_since_ns
            self._waiting_ns += waited_ns
            self._offered_ns += waited_ns * self.limit
            self._waiting_since_ns = now_ns

    # -- changing ---------------------------------------------------------------------------

    def change(self, limit: int, period_ns: int, now_ns: int) -> None:
        """Put another limit in force (1.5).

        What the window and the debt hold counts against it: in proportion if it was delivered under
        a higher limit, else in full. The debt takes the room that a raise frees at once.
        """
        if limit == self.limit and period_ns == self.period_ns:
            return
        self._count_wait(now_ns)
        self._cached_at_ns = -1
        self.refused_until_ns = min(self.refused_until_ns, now_ns)
        if self.in_window:
            self._expire(now_ns)
        ahead_ns = self._paid_ns - now_ns
        if ahead_ns > 0:
            # What was delivered in advance is an amount: it takes longer at a lower rate.
            ahead_ns = -(-ahead_ns * self.limit * period_ns // (limit * self.period_ns))
            self._paid_ns = now_ns + ahead_ns
        self._paid_rest = 0
        past = self._past
        if past is None and self.in_window:
            past = PastLimits(self.limit, self.in_window, self.debt)
        self.limit = limit
        self._set_credit()
        if past is not None:
            past.change(limit, period_ns, self.period_ns)
            self._count(past)
        if period_ns != self.period_ns:
            self._offered_ns = self._offered_ns * period_ns // self.period_ns
            self._change_period(period_ns, now_ns)
        if self.pace_open_ns > now_ns:
            self.pace_open_ns = max(self._paid_ns, min(self.pace_open_ns, now_ns + self._slice_ns))
        if self.debt and self.in_window < limit:
            past = self._past
            if past is None:
                taken = min(self.debt, limit - self.in_window)
                self.debt -= taken
                self.in_window += taken
            else:
                taken = past.take_room()
                self._count(past)
            self._log(max(now_ns, self._tail_ns), taken, merge=False)

    def forgive_debt(self, now_ns: int, charged_ns: int) -> None:
        """Drop the debt: from now on only what was delivered in the last period counts.
        ``charged_ns`` is when the last entry was charged."""
        if now_ns - charged_ns >= self.period_ns:
            self.in_window, self._past = 0, None
            self._empty()
        elif self.debt:
            past, owed = self._past, self.debt
            if past is None:
                self.in_window += owed
            else:
                owed = past.forgive()
                self._count(past)
            if self._first == len(self._amounts):
                self._begin_log(charged_ns, owed)
            else:
                self._amounts[-1] += owed
        self.debt = 0
        self._cached_at_ns = -1
        self._paid_ns = min(self._paid_ns, now_ns)
        self.pace_open_ns = min(self.pace_open_ns, now_ns)

    def _change_period(self, period_ns: int, now_ns: int) -> None:
        """Rewrite the log for another period, which sets the width of slots and ticks."""
        at_ns, slots = self._head_ns, []
        for index in range(self._first, len(self._amounts)):
            if index > self._first:
                at_ns += self._gaps[index] * self._tick_ns
            slots.append((at_ns, self._amounts[index]))
        self._gaps, self._amounts, self._first = array("I"), array("q"), 0
        self._set_period(period_ns)
        # What is a whole period before the next slot has left the window by then, whenever it was.
        apart_ns = self._tick_ns << _GAP_BITS
        for index in range(len(slots) - 2, -1, -1):
            at_ns, amount = slots[index]
            slots[index] = max(at_ns, slots[index + 1][0] - apart_ns), amount
        for at_ns, amount in slots:
            merge = at_ns // self._slot_ns == self._tail_ns // self._slot_ns
            self._log(max(at_ns, self._tail_ns) if self._amounts else at_ns, amount, merge)
        if self.in_window:
            self._expire(now_ns)

    def is_clear(self, now_ns: int) -> bool:
        """Whether no past delivery counts any more, so that the budget is as good as new."""
        if self.in_window:
            self._expire(now_ns)
        return not self.in_window and not self.debt

    def restart_figures(self, now_ns: int) -> None:
        """Set the figures (granted, offered, waiting) to 0; the window stays."""
        self._count_wait(now_ns)
        self.granted = self._offered_ns = self._waiting_ns = 0

    def statistics(self, now_ns: int) -> BudgetStatistics:
        """The present figures, with the window brought up to now."""
        if self.in_window:
            self._expire(now_ns)
        self._count_wait(now_ns)
        return BudgetStatistics(
            dimension=self.dimension,
            limit=self.limit,
            period_ns=self.period_ns,
            delivered_in_window=self.in_window,
            debt=self.debt,
            granted=self.granted,
            offered=self._offered_ns // self.period_ns,
            waiting_ns=self._waiting_ns,
        )
