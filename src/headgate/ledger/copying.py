"""Copies a topic unchanged from one log to another: ordinals, ids, times, cursors.

For a start: it blocks, and nothing else uses the two logs meanwhile. The copy counts when the
metadata names the other log; before that, the caller gives it up with
:meth:`headgate.ledger.CommitLog.drop_topic`. After a crash in between, the copy is garbage in its
log, and the next start copies again.
"""

from __future__ import annotations

from typing import Final

from headgate.base.ack_set import AckSet
from headgate.base.errors import CorruptionError, HeadgateError, StorageError, invariant
from headgate.base.units import MIB
from headgate.ledger.commit_log import CommitLog
from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.write.rollover import LEDGERS_GIVEN

COPY_BYTES: Final = 4 * MIB
COPY_ENTRIES: Final = 4_096
"""Most entries and bytes in memory at once."""


def copy_topic(source: CommitLog, target: CommitLog, number: int) -> int:
    """Copy a topic and its cursors, durable and behind a checkpoint; returns its entries.

    Raises:
        StorageError: a disk refused; the copy is removed.
        CorruptionError: the topic or a cursor lost something; the copy is removed.
    """
    try:
        _copy(source, target, number)
    except HeadgateError:
        _abandon(target, number)
        raise
    topic = target.topic(number)
    return topic.end - topic.first


def _copy(source: CommitLog, target: CommitLog, number: int) -> None:
    old = source.topic(number)
    cursors = source.cursors_of(number)
    damage = next((d for d in (old.damage, *(c.damage for c in cursors)) if d), "")
    if damage or any(stop > old.first for _, stop in old.lost):
        raise CorruptionError(damage or "entries of it are lost")
    new = target.adopt_topic(number, old)
    rows = old.ledger_rows()
    new.ledger_limit = LEDGERS_GIVEN
    at = old.first
    while at < old.end:
        plan = source.locate(old, at, COPY_ENTRIES, COPY_BYTES)
        for _, ordinal, body in source.read(plan):
            _open_ledgers(new, rows, ordinal)
            published_ms = old.published_ms(ordinal)
            target.stage_entry(
                new, old.message_count(ordinal), old.received_ms(ordinal), published_ms, body
            )
            at = ordinal + 1
        _commit(target)
        target.run_maintenance()
    _open_ledgers(new, rows, old.end)
    new.ledger_limit = -1
    for cursor in cursors:
        acks = AckSet.from_bytes(cursor.ack_set.to_bytes())
        target.create_cursor(number, cursor.name, acks, cursor.properties)
    target.checkpoint()
    invariant(new.end == old.end, f"topic {number} was copied up to {new.end} of {old.end}")


def _open_ledgers(topic: TopicLog, rows: list[tuple[int, int, int]], ordinal: int) -> None:
    """Open the ledgers that begin at or before an ordinal and are not open yet."""
    known = topic.ledger_rows()
    last_id = known[-1][0] if known else -1
    for ledger_id, first, created_ms in rows:
        if ledger_id > last_id and first <= ordinal:
            topic.open_ledger(ledger_id, first, created_ms)
            topic.mark = -1  # the next entry writes a RUN record with the ledger


def _commit(log: CommitLog) -> None:
    batch = log.seal_batch()
    if batch is not None:
        log.commit(batch)


def _abandon(log: CommitLog, number: int) -> None:
    log.drop_topic(number)
    if log.failed is None:
        try:
            _commit(log)
        except StorageError:
            return
