"""Counts the backlog of a subscription from the index, in slices.

The index knows how many messages an entry has, so nothing is read but parts of the index that are
on the disk, and those on the read lane. The figures are exact at the instant at which each slice
is counted; messages that are stored after the start are left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from headgate.base.work_units import PIECE_UNITS
from headgate.broker.slices import Turns
from headgate.engine.errors import TopicFencedError
from headgate.engine.ports import EntryLog
from headgate.engine.subscription import Subscription
from headgate.storage.index_loader import IndexLoader

RANGES_PER_SLICE: Final = 64
"""Runs of acknowledged entries that are looked at without a pause: each is two look-ups."""


@dataclass(slots=True)
class BacklogCount:
    """The unacknowledged entries of a subscription from some entry on."""

    entries: int = 0
    messages: int = 0
    first: int | None = None
    """The first of them; None if there are none."""
    last: int | None = None


class _Slice(NamedTuple):
    """Consecutive entries, with the runs ``(first, last)`` of acknowledged ones among them."""

    first: int
    stop: int
    acked: list[tuple[int, int]]

    @property
    def unacked_entries(self) -> int:
        return self.stop - self.first - sum(last - first + 1 for first, last in self.acked)


async def count_backlog(
    subscription: Subscription, start: int, index: IndexLoader, turns: Turns
) -> BacklogCount:
    """The backlog of a subscription from the entry ``start`` on.

    Raises:
        TopicFencedError: the subscription was removed or unloaded meanwhile.
        StorageError: the index cannot be read.
    """
    found = BacklogCount()
    log, acks = subscription.topic.log, subscription.acks
    async for part in _slices(subscription, start, turns):
        held = await index.load(log, _looked_up(part, log))
        found.entries += part.unacked_entries
        found.messages += await index.look_up(partial(_messages, log, part))
        found.messages -= acks.partial_messages(part.first, part.stop)
        del held
        first = acks.next_unacked(part.first, part.stop)
        if first < part.stop:
            found.first = first if found.first is None else found.first
            ends_acked = part.acked and part.acked[-1][1] == part.stop - 1
            found.last = part.acked[-1][0] - 1 if ends_acked else part.stop - 1
    return found


async def nth_unacked(subscription: Subscription, number: int, turns: Turns) -> int | None:
    """The ``number``-th unacknowledged entry, from 1 on; None if there are fewer.

    Raises:
        TopicFencedError: the subscription was removed or unloaded meanwhile.
    """
    left = number
    async for part in _slices(subscription, 0, turns):
        if part.unacked_entries < left:
            left -= part.unacked_entries
            continue
        ordinal = part.first
        for first, last in part.acked:
            if first - ordinal >= left:
                break
            left -= first - ordinal
            ordinal = last + 1
        return ordinal + left - 1
    return None


async def _slices(subscription: Subscription, start: int, turns: Turns) -> AsyncIterator[_Slice]:
    """The entries of a topic from ``start`` on that its subscription may not have acknowledged."""
    topic, acks = subscription.topic, subscription.acks
    log = topic.log
    end, at = log.end, start
    while True:
        at = max(at, log.first, acks.mark_delete + 1)
        if at >= end:
            return
        acked = list(islice(acks.acked_ranges(end, at), RANGES_PER_SLICE))
        stop = end if len(acked) < RANGES_PER_SLICE else acked[-1][1] + 1
        yield _Slice(at, stop, acked)
        at = stop
        await turns.give_way(PIECE_UNITS)
        if subscription.removed or not topic.is_live:
            raise TopicFencedError(f"Subscription {subscription.name} was closed")


def _looked_up(part: _Slice, log: EntryLog) -> list[int]:
    """The entries whose index :func:`_messages` looks up, as far as it may be on the disk."""
    ends = {part.first, part.stop}.union(*((first, last + 1) for first, last in part.acked))
    return sorted(ordinal for ordinal in ends if log.first <= ordinal < log.memory_first)


def _messages(log: EntryLog, part: _Slice) -> int:
    """Messages of the entries that are not acknowledged as a whole."""
    count = log.messages_before(part.stop) - log.messages_before(part.first)
    for first, last in part.acked:
        count -= log.messages_before(last + 1) - log.messages_before(first)
    return count
