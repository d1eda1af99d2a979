"""One limit in one dimension: a sliding log of what was delivered, a debt, and a pace.

Law 1.1: in any window of one period, delivered <= limit + one entry. The log holds what was
delivered in the last period, as slots; a slot expires one period after its *last* amount, so
merging amounts can only delay them. Three rules decide about the next entry:

* **window**: it may go while less than the limit is in the window and no debt is open (1.6).
* **debt**: what a large entry delivers beyond the limit is owed. Whenever an amount expires, an
  open debt takes that room at that very instant, as if the owed part were delivered only then.
* **pace**: while something waits, deliveries come in slices (1.2). Time does the counting:
  ``_paid_ns`` is the instant up to which the limit's rate has been used. An entry of n moves it
  on by n/limit of a period, exactly (the fraction is carried); it never lags more than 20 ms
  behind the present, so a longer stall is not caught up. When it passes the present the slice is
  over, and the next one opens a slice later, or when one large entry is paid for.

An idle budget has no pace: what fits the window goes at once and nobody is delayed.

    slots     gap|gap|gap|...      4 bytes each, time since the slot before, in ticks
              amount|amount|...    8 bytes each
    _head_ns  time of the oldest slot          _tail_ns  time of the youngest

Slots are 4 ms wide, in a period of more than 0.96 s 1/240 of it. (A long period therefore loses
up to 1/240 = 0.42 % of its limit; the law allows 0.5 %.) The parts of a debt get slots of their
own while there are few. All integers: no drift.

Where the limit was changed within the last period, ``in_window`` and ``debt`` are what the amounts
count under the present one (law 1.5), which :mod:`headgate.flow.limits.past_limits` works out; the
slots keep the amounts as they were accepted.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from headgate.base.units import NS_PER_MS
from headgate.flow.limits.past_limits import PastLimits
from headgate.flow.limits.rate_limit import Dimension, Level

SLICE_NS_MAX = 8 * NS_PER_MS
"""From one slice to the next, or a hundredth of a shorter period. With 10 ms and wake-ups up to
1 ms late, slices double up and a second may miss 2 %; with 8 ms it misses at most 1.6 %."""
SLICES_PER_PERIOD = 100
CREDIT_HALF_SLICES = 5
"""A slice carries at most so many half slices' worth: 20 ms of the limit. So a stall of up to 10 ms
and a late wake-up are caught up, and no longer stall is."""
CREDIT_NS_MAX = SLICE_NS_MAX * CREDIT_HALF_SLICES // 2
SLOTS_PER_PERIOD_MAX = 240
COMPACT_AFTER = 16
"""Expired slots stay at the arrays' front until so many, or all of several, are dropped at once. A
single one stays to be written over: a limit of one a second would else free and take its memory
with each message."""
_GAP_BITS = 31


@dataclass(frozen=True, slots=True)
class BudgetStatistics:
    """One limit in one dimension, at one instant.

    ``delivered_in_window`` and ``debt`` are amounts (messages or bytes) as they count under the
    present limit: what was accepted under a higher one counts less. ``granted`` is all that
    was ever delivered under it. ``waiting_ns`` is how long something waited for it and
    ``offered`` what the limit allowed in that time, so that offered against what was granted
    meanwhile shows how well the limit was used.
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
        """What fair shares are of: the limit when the present waiting began."""
        self.in_window = 0
        """What counts in the present window; never above the largest limit in force in it."""
        self.debt = 0
        """Amount delivered beyond the limit and not yet taken out of expiring room."""
        self.granted = 0
        """All that was ever charged."""
        self.lost_ns = 0
        """Time whose share of the limit nobody gets any more: something waited, the limit allowed
        it, and whoever was to send it came later than is caught up."""
        self.paced = False
        """Whether something waits for this budget, so that the pace applies."""
        self.pace_open_ns = now_ns
        self.refused_until_ns = 0
        """The release announced by the last refusal; the gate keeps it up to date."""
        self._cached_at_ns = -1
        """When :meth:`release_ns` was last asked, -1 if anything has happened since: whoever asks
        again in the same instant gets the same answer."""
        self._cached_release_ns = now_ns
        self._gaps = array("I")
        self._amounts = array("q")
        self._first = 0
        self._head_ns = self._tail_ns = now_ns
        self._paid_ns = now_ns
        self._paid_rest = 0
        self._past: PastLimits | None = None
        """What counts of the window, where not all of it was accepted under the present limit."""
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
        # Of the usual periods and limits the same number for all: 32 bytes less for each budget.
        self._credit_ns = min(CREDIT_NS_MAX, self._slice_ns * CREDIT_HALF_SLICES // 2)
        if self.limit * self._credit_ns < self.period_ns:
            # One entry: who waits for others' turns when it is released loses nothing by that.
            self._credit_ns = self.period_ns // self.limit

    # -- deciding ---------------------------------------------------------------------------

    def release_ns(self, now_ns: int) -> int:
        """``now_ns`` when the next entry may go now, else the first instant at which it may
        (if nothing else is charged until then)."""
        if now_ns == self._cached_at_ns:
            return self._cached_release_ns
        limit = self.limit
        if self.in_window >= limit and self._head_ns + self.period_ns <= now_ns:
            self._expire(now_ns)
        at_ns = now_ns
        # Where there is room, what expired meanwhile could only add to it.
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
                # A full window is no stall: after a silence, too, one slice's credit is there and
                # only a late wake-up adds to it. A larger lump would come back with every period.
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
        """When the window has room again, given that it has none. While a debt is open, each
        period takes one whole limit of it and repeats the same slots one period later."""
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
        """Book an entry of ``amount`` handed over now; also one that should not have gone."""
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
                # Counted from when this slice could have begun, so late wake-ups do not add up.
                opened_ns = self.pace_open_ns
                if now_ns - opened_ns >= self._slice_ns:
                    opened_ns = now_ns
                next_slice_ns = opened_ns + self._slice_ns
                self.pace_open_ns = paid_ns if paid_ns > next_slice_ns else next_slice_ns

    def _forfeit(self, now_ns: int) -> None:
        """The stall was too long: what it left of the limit is not caught up."""
        self.lost_ns += now_ns - self._credit_ns - self._paid_ns
        self._paid_ns = now_ns - self._credit_ns
        self._paid_rest = 0

    def give_back(self, now_ns: int, amount: int) -> None:
        """What was charged last did not happen: so much of it counts no more."""
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
        """Append to the log; ``at_ns`` is not before its tail. Merged slots move on to
        ``at_ns``: what expires later than it might can break no window."""
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
        """Drop what left the window by now, oldest first, and let an open debt take its room."""
        if self._past is not None:
            self._expire_past(self._past, now_ns)
            return
        period_ns, tick_ns = self.period_ns, self._tick_ns
        if self.debt >= self.limit == self.in_window:
            # Whole periods of debt repeat the same slots: skip them at once.
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
        """The same where not all amounts count in full."""
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
        """Take over what the window and the debt count."""
        self.in_window, self.debt = past.in_window, past.debt
        self._past = None if past.all_under_present_limit else past

    def _log_owed(self, expired_ns: int, taken: int) -> None:
        """A debt took room that opened at that instant."""
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
        """Drop the log: new arrays, because one that shrinks by a few items keeps its memory."""
        self._gaps, self._amounts, self._first = array("I"), array("q"), 0

    # -- waiting ----------------------------------------------------------------------------

    def begin_waiting(self, now_ns: int, release_ns: int) -> None:
        """Something waits from now on, refused until ``release_ns``: pace what goes, beginning
        then with one slice's credit."""
        if not self.paced:
            self.paced = True
            self._cached_at_ns = -1
            self._waiting_since_ns = self.pace_open_ns = now_ns
            self._paid_ns = release_ns - self._slice_ns
            self._paid_rest = 0

    def end_waiting(self, now_ns: int) -> None:
        """Nothing waits any more: the pace no longer applies."""
        if self.paced:
            self._settle(now_ns)
            self.paced = False
            self._cached_at_ns = -1

    def _settle(self, now_ns: int) -> None:
        if self.paced:
            waited_ns = now_ns - self._waiting_since_ns
            self._waiting_ns += waited_ns
            self._offered_ns += waited_ns * self.limit
            self._waiting_since_ns = now_ns

    # -- changing ---------------------------------------------------------------------------

    def change(self, limit: int, period_ns: int, now_ns: int) -> None:
        """Put another limit in force (1.5). What is in the window counts against it, in full or,
        accepted under a higher one, in proportion; so does a debt. Room that a raise frees is taken
        by the debt at once."""
        if limit == self.limit and period_ns == self.period_ns:
            return
        self._settle(now_ns)
        self._cached_at_ns = -1
        self.refused_until_ns = min(self.refused_until_ns, now_ns)
        if self.in_window:
            self._expire(now_ns)
        ahead_ns = self._paid_ns - now_ns
        if ahead_ns > 0:
            # Credit used in advance is an amount: it takes longer at a lower rate.
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
        """Nothing is owed any more, and only what really was delivered in the last period counts;
        ``charged_ns`` is when the last entry was."""
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
        """Write the log anew: slots and ticks follow the period."""
        at_ns, slots = self._head_ns, []
        for index in range(self._first, len(self._amounts)):
            if index > self._first:
                at_ns += self._gaps[index] * self._tick_ns
            slots.append((at_ns, self._amounts[index]))
        self._gaps, self._amounts, self._first = array("I"), array("q"), 0
        self._set_period(period_ns)
        for at_ns, amount in slots:
            merge = at_ns // self._slot_ns == self._tail_ns // self._slot_ns
            self._log(max(at_ns, self._tail_ns) if self._amounts else at_ns, amount, merge)
        if self.in_window:
            self._expire(now_ns)

    def is_clear(self, now_ns: int) -> bool:
        """Whether nothing that it delivered counts any more: it is as good as a new one."""
        if self.in_window:
            self._expire(now_ns)
        return not self.in_window and not self.debt

    def restart_figures(self, now_ns: int) -> None:
        """Count what is granted, offered and waited from 0 on; the window stays as it is."""
        self._settle(now_ns)
        self.granted = self._offered_ns = self._waiting_ns = 0

    def statistics(self, now_ns: int) -> BudgetStatistics:
        """The present figures, with the window brought up to now."""
        if self.in_window:
            self._expire(now_ns)
        self._settle(now_ns)
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
