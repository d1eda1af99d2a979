"""Internal statistics of a live topic in Pulsar's shape: its ledgers and its cursors.

Ledgers here are ranges of message ids, and cursors have no ledgers of their own: the fields about
those have Pulsar's values for none. As in Pulsar, the ledger that is being written shows no
entries; those are in ``currentLedgerEntries``.
"""

from __future__ import annotations

from itertools import islice

from headgate.base.instants import iso_time
from headgate.base.positions import EARLIEST
from headgate.base.sliced import Sliced
from headgate.engine.dispatch_shared import SharedDispatcher
from headgate.engine.dispatch_single import SingleActiveDispatcher
from headgate.engine.ports import LedgerRange
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.account.account import Cell
from headgate.observe.stats.fields import CursorStats, InternalStats, LedgerStats

RANGES_SHOWN_MAX = 100
"""Most acknowledged ranges in the list of one cursor; another field counts all. They are a part of
the memory that an answer about a subscription is charged with."""

RANGES_PER_YIELD = 25
"""Ranges in a list that take about as long as the other fields of a cursor."""


def internal_stats(topic: Topic, *, metadata: bool, skew_ms: int = 0) -> Sliced[InternalStats]:
    """Ledgers and cursors of a live topic; ``metadata`` adds a description of each ledger.

    ``entriesAddedCounter`` counts from the topic's creation. ``skew_ms``: how far the wall clock
    is ahead of the time of the log, which dates ledgers.
    """
    log = topic.log
    cursors = {}
    for name, subscription in list(topic.subscriptions.items()):
        if not subscription.removed:
            cursors[name] = stats = cursor_stats(subscription)
            shown = min(stats.total_non_contiguous_deleted_messages_range, RANGES_SHOWN_MAX)
            for _ in range(shown // RANGES_PER_YIELD):
                yield
        yield
    ledgers = log.ledgers()
    last = log.position(log.end - 1) if ledgers else EARLIEST
    found = InternalStats(
        entries_added_counter=log.end,
        number_of_entries=log.end - log.first,
        total_size=topic.storage_bytes(),
        current_ledger_entries=log.current_ledger_entries,
        current_ledger_size=log.current_ledger_bytes,
        last_ledger_created_timestamp=iso_time(
            ledgers[-1].created_ms + skew_ms if ledgers else topic.created_ms
        ),
        waiting_cursors_count=sum(cursor.waiting_read_op for cursor in cursors.values()),
        pending_add_entries_count=topic.publishing.pending_count,
        last_confirmed_entry=str(last),
        ledgers=[
            _ledger_stats(info, skew_ms, is_open=info is ledgers[-1], metadata=metadata)
            for info in ledgers
        ],
        cursors=cursors,
    )
    if topic.terminated:
        found.state = "Terminated"
    return found


def cursor_stats(subscription: Subscription) -> CursorStats:
    """The cursor of one subscription."""
    acks, log = subscription.acks, subscription.topic.log
    read = read_ordinal(subscription)
    waits = bool(subscription.consumers) and subscription.account.cell is Cell.CAUGHT_UP
    return CursorStats(
        mark_delete_position=str(log.position(acks.mark_delete)),
        read_position=str(log.position(read)),
        waiting_read_op=waits,
        pending_read_ops=int(subscription.dispatcher.reading),
        messages_consumed_counter=subscription.done_entries,
        individually_deleted_messages=_runs_text(subscription),
        last_ledger_switch_timestamp=iso_time(subscription.created_ms),
        active=bool(subscription.consumers),
        number_of_entries_since_first_not_acked_message=read - acks.mark_delete,
        total_non_contiguous_deleted_messages_range=acks.ranges_count,
        subscription_have_pending_read=waits or subscription.dispatcher.reading,
    )


def read_ordinal(subscription: Subscription) -> int:
    """The entry after the last one that was handed to a consumer."""
    dispatcher = subscription.dispatcher
    read = subscription.acks.mark_delete + 1
    if isinstance(dispatcher, (SharedDispatcher, SingleActiveDispatcher)):
        read = max(read, dispatcher.read_ordinal)
    return min(read, subscription.topic.log.end)


def _ledger_stats(info: LedgerRange, skew_ms: int, *, is_open: bool, metadata: bool) -> LedgerStats:
    stats = LedgerStats(
        ledger_id=info.ledger_id,
        entries=0 if is_open else info.entries,
        size=0 if is_open else info.size_bytes,
    )
    if not metadata:
        return stats
    text = (
        f"LedgerMetadata{{state={'OPEN' if is_open else 'CLOSED'}, "
        f"created={iso_time(info.created_ms + skew_ms)}, digestType=CRC32C}}"
    )
    return LedgerStats(
        ledger_id=stats.ledger_id, entries=stats.entries, size=stats.size, metadata=text
    )


def _runs_text(subscription: Subscription) -> str:
    """Acknowledged ranges beyond the mark-delete position, half open as Pulsar writes them:
    ``(8:3..8:5]`` is entries 4 and 5 of ledger 8."""
    log = subscription.topic.log
    ranges = [
        f"({log.position(first - 1)}..{log.position(last)}]"
        for first, last in islice(subscription.acks.acked_ranges(), RANGES_SHOWN_MAX)
    ]
    return f"[{','.join(ranges)}]"
