"""Plans the ranges that the tasks of a query read.

The input consists of snapshots from the admin API. The unit is the entry, which the cluster counts.
Rows and bytes are estimates from the mean of an entry, so a limit may be exceeded by less than one
entry per partition. Ranges are exact, down to messages within a batch.

Pure: no I/O, no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pyspark_pulsar.offsets import WHOLE_ENTRY, Position, earliest


@dataclass(frozen=True, slots=True)
class LedgerSpan:
    """A ledger that the partition still holds, with the entries 0 to ``entries - 1``."""

    ledger_id: int
    entries: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """The state of one partition, from the admin API.

    ``ledgers`` are in order, the open one last. ``last_published`` is the (ledger id, entry id) of
    the last message that readers get, even if it was trimmed; None if there never was one. It is
    before the first message of a transaction that has not ended, and may have the entry id -1.
    ``messages_per_entry`` is a mean, at least 1. ``last_stored`` is the last message, whether
    readers get it or not; None if that is ``last_published``.
    """

    ledgers: tuple[LedgerSpan, ...]
    last_published: tuple[int, int] | None
    messages_per_entry: float = 1.0
    last_stored: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class DueEntries:
    """The entries of one ledger within a range, both ends included."""

    ledger_id: int
    first_entry: int
    last_entry: int
    entry_bytes_mean: float

    @property
    def entries(self) -> int:
        """The number of entries."""
        return self.last_entry - self.first_entry + 1


@dataclass(frozen=True, slots=True)
class ReadRange:
    """The work of one task: the messages of ``topic`` in (start, end]. Spark sends it to the
    worker.

    ``due`` are the entries in the range when it was planned. The task ends after the last one. If
    one of them does not arrive, the task checks for lost data.
    """

    topic: str
    start: Position
    end: Position
    due: tuple[DueEntries, ...]


@dataclass(frozen=True, slots=True)
class RangePlan:
    """The tasks of one batch, with a sentence for each partition that lost unread messages."""

    ranges: tuple[ReadRange, ...]
    losses: tuple[str, ...]


def end_position(topic: str, snapshot: TopicSnapshot) -> Position:
    """The position after the last message of ``topic``.

    After the last entry of a closed ledger, this is the start of the next ledger. So a checkpoint
    with this position stays valid when the closed ledger is trimmed.
    """
    if snapshot.last_published is None or not snapshot.ledgers:
        return earliest(topic)
    ledger_id, entry_id = snapshot.last_published
    oldest, newest = snapshot.ledgers[0], snapshot.ledgers[-1]
    if ledger_id < oldest.ledger_id:
        ledger_id, entry_id = oldest.ledger_id, -1
    elif (ledger_id, entry_id) >= (newest.ledger_id, newest.entries):
        ledger_id, entry_id = newest.ledger_id, newest.entries - 1
    for ledger, following in pairwise(snapshot.ledgers):
        if ledger.ledger_id == ledger_id and entry_id + 1 >= ledger.entries:
            ledger_id, entry_id = following.ledger_id, -1
    return earliest(topic)._replace(ledger_id=ledger_id, entry_id=entry_id)


def stored_end(topic: str, snapshot: TopicSnapshot) -> Position:
    """As :func:`end_position`, after the last message that ``topic`` stores: also one behind the
    first of a transaction that has not ended."""
    if snapshot.last_stored is not None:
        snapshot = replace(snapshot, last_published=snapshot.last_stored)
    return end_position(topic, snapshot)


def due_entries(snapshot: TopicSnapshot, start: Position, end: Position) -> tuple[DueEntries, ...]:
    """The entries in (start, end], by ledger, including a partly read entry at either end."""
    due: list[DueEntries] = []
    for ledger in snapshot.ledgers:
        first, last = 0, ledger.entries - 1
        if ledger.ledger_id < start.ledger_id or ledger.ledger_id > end.ledger_id:
            continue
        if ledger.ledger_id == start.ledger_id:
            first = start.entry_id + (1 if start.batch_index == WHOLE_ENTRY else 0)
        if ledger.ledger_id == end.ledger_id:
            last = min(last, end.entry_id)
        if first <= last:
            mean_bytes = ledger.size_bytes / ledger.entries
            due.append(DueEntries(ledger.ledger_id, first, last, mean_bytes))
    return tuple(due)


def unread_loss(
    topic: str, snapshot: TopicSnapshot | None, start: Position, end: Position
) -> str | None:
    """A sentence if messages in (start, end] may be lost, or if ``topic`` was recreated; else None.

    If the ledger of the start is gone, messages may be lost unless the start is after the last
    published message: the ledger may have had more entries.
    """
    if snapshot is None:
        return f"{topic} no longer exists; the query read it up to {start}"
    if not snapshot.ledgers:
        return None
    oldest, newest = snapshot.ledgers[0], snapshot.ledgers[-1]
    last = snapshot.last_stored or snapshot.last_published
    all_read = last is not None and start.order_key >= Position(*last).order_key
    if 0 <= start.ledger_id < oldest.ledger_id and not all_read:
        return (
            f"the query read {topic} up to {start}, but the oldest ledger it still holds is "
            f"{oldest.ledger_id}: messages in between may have been trimmed"
        )
    beyond = max(start, end, key=lambda position: position.order_key)
    if _is_after(beyond, newest):
        return (
            f"the query read or planned {topic} up to {beyond}, but it ends at ledger "
            f"{newest.ledger_id} with {newest.entries} entries: it is not the same topic"
        )
    return None


def replaced_topic(topic: str, snapshot: TopicSnapshot, start: Position) -> str | None:
    """A sentence if ``topic`` was recreated: it never had the position ``start``; else None.

    Ledger ids only grow, and the oldest ledgers are trimmed first. So a position before the
    ledgers may have been trimmed. A position after or between them never existed: the ids began
    again, as after a loss of the cluster's data. A position before the first entry of a ledger
    proves nothing, because an empty ledger may be removed at any time.
    """
    if start.ledger_id < 0 or not snapshot.ledgers:
        return None
    oldest, newest = snapshot.ledgers[0], snapshot.ledgers[-1]
    if not _is_after(start, newest):
        entries = {ledger.ledger_id: ledger.entries for ledger in snapshot.ledgers}
        if start.ledger_id < oldest.ledger_id or start.entry_id < entries.get(start.ledger_id, 0):
            return None
    return (
        f"the query read {topic} up to {start}, a position that it never had (it ends at ledger "
        f"{newest.ledger_id} with {newest.entries} entries): it is not the same topic. The query "
        "reads it from its first message; messages of the earlier topic may be lost"
    )


def batch_start(topic: str, snapshot: TopicSnapshot, start: Position, end: Position) -> Position:
    """The begin of the batch (``start``, ``end``]: ``start``, or the first message if ``topic`` was
    recreated before the batch was planned (:func:`replaced_topic`).

    In that case ``end`` is a position of the current topic. If ``end`` is not, the batch was
    planned for the earlier topic.
    """
    if replaced_topic(topic, snapshot, end) is not None:
        return start
    if start.order_key > end.order_key or replaced_topic(topic, snapshot, start) is not None:
        return earliest(topic)
    return start


def _is_after(position: Position, newest: LedgerSpan) -> bool:
    """Whether a position is after the last entry of the newest ledger."""
    return (position.ledger_id, position.entry_id) >= (newest.ledger_id, newest.entries)


def admit(
    starts: Mapping[str, Position],
    ends: Mapping[str, Position],
    snapshots: Mapping[str, TopicSnapshot],
    rows_max: int | None,
    bytes_max: int | None,
) -> dict[str, Position]:
    """The end of this trigger in each partition: at most ``ends``, and within both limits.

    A limit is divided over the partitions by their backlog. Every partition with a backlog gets at
    least one entry, so that none starves and each trigger makes progress.
    """
    due = {
        topic: due_entries(snapshots[topic], starts.get(topic, earliest(topic)), end)
        for topic, end in ends.items()
    }
    entries = {topic: sum(part.entries for part in parts) for topic, parts in due.items()}
    per_entry = {topic: max(1.0, snapshots[topic].messages_per_entry) for topic in ends}
    rows = {topic: entries[topic] * per_entry[topic] for topic in ends}
    sizes = {
        topic: sum(part.entries * part.entry_bytes_mean for part in parts)
        for topic, parts in due.items()
    }
    granted = dict(entries)
    if rows_max is not None and sum(rows.values()) > rows_max:
        granted = _share_rows(rows, per_entry, rows_max)
    if bytes_max is not None and sum(sizes.values()) > bytes_max:
        for topic, total_bytes in sizes.items():
            share_bytes = bytes_max * total_bytes / sum(sizes.values())
            granted[topic] = min(granted[topic], _entries_within(due[topic], share_bytes))
    admitted: dict[str, Position] = {}
    for topic, end in ends.items():
        whole = entries[topic] == 0 or granted[topic] >= entries[topic]
        admitted[topic] = end if whole else position_after(due[topic], max(1, granted[topic]), end)
    return admitted


def _share_rows(
    rows: Mapping[str, float], per_entry: Mapping[str, float], rows_max: int
) -> dict[str, int]:
    """Entries per partition for ``rows_max`` rows, by backlog and largest remainder."""
    total = sum(rows.values())
    exact = {topic: rows_max * rows[topic] / total / per_entry[topic] for topic in rows}
    granted = {topic: int(exact[topic]) for topic in rows}
    spare = rows_max - sum(granted[topic] * per_entry[topic] for topic in rows)
    for topic in sorted(rows, key=lambda name: (granted[name] - exact[name], name)):
        if rows[topic] > 0 and per_entry[topic] <= spare:
            granted[topic] += 1
            spare -= per_entry[topic]
    return granted


def _entries_within(due: Sequence[DueEntries], bytes_max: float) -> int:
    """How many of the first entries fit into ``bytes_max``."""
    count = 0
    for part in due:
        fit = int(bytes_max / part.entry_bytes_mean) if part.entry_bytes_mean > 0 else part.entries
        if fit < part.entries:
            return count + fit
        count += part.entries
        bytes_max -= part.entries * part.entry_bytes_mean
    return count


def position_after(due: Sequence[DueEntries], entries: int, end: Position) -> Position:
    """The position after the first ``entries`` of the due entries, at most ``end``."""
    for part in due:
        if entries <= part.entries:
            reached = end._replace(
                ledger_id=part.ledger_id,
                entry_id=part.first_entry + entries - 1,
                batch_index=WHOLE_ENTRY,
            )
            return min(reached, end, key=lambda position: position.order_key)
        entries -= part.entries
    return end


def plan_ranges(
    starts: Mapping[str, Position],
    ends: Mapping[str, Position],
    snapshots: Mapping[str, TopicSnapshot | None],
    partitions_min: int,
) -> RangePlan:
    """One task for each partition with due messages, or more for ``partitions_min``.

    A partition absent from ``starts`` is new, and is read from its first message. Large partitions
    are split between entries, in proportion to their share of all due entries.
    """
    ranges: list[ReadRange] = []
    losses: list[str] = []
    for topic in sorted(ends):
        start, end, snapshot = starts.get(topic, earliest(topic)), ends[topic], snapshots[topic]
        if start.order_key >= end.order_key:
            continue
        loss = unread_loss(topic, snapshot, start, end)
        if loss is not None:
            losses.append(loss)
        due = due_entries(snapshot, start, end) if snapshot is not None else ()
        if due:
            ranges.append(ReadRange(topic, start, end, due))
    total = sum(part.entries for work in ranges for part in work.due)
    pieces: list[ReadRange] = []
    for work in ranges:
        own = sum(part.entries for part in work.due)
        pieces.extend(_split(work, min(own, max(1, -(-partitions_min * own // total)))))
    return RangePlan(tuple(pieces if partitions_min > len(ranges) else ranges), tuple(losses))


def _split(work: ReadRange, pieces: int) -> list[ReadRange]:
    """``work`` split into ``pieces`` ranges of nearly equal numbers of entries, without gaps."""
    own = sum(part.entries for part in work.due)
    cuts = [position_after(work.due, own * n // pieces, work.end) for n in range(1, pieces)]
    borders = [work.start, *cuts, work.end]
    snapshot = TopicSnapshot(
        tuple(LedgerSpan(part.ledger_id, part.last_entry + 1, 0) for part in work.due),
        None,
    )
    means = {part.ledger_id: part.entry_bytes_mean for part in work.due}
    ranges: list[ReadRange] = []
    for start, end in pairwise(borders):
        due = tuple(
            DueEntries(part.ledger_id, part.first_entry, part.last_entry, means[part.ledger_id])
            for part in due_entries(snapshot, start, end)
        )
        if due:
            ranges.append(ReadRange(work.topic, start, end, due))
    return ranges
