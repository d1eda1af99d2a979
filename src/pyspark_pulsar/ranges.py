"""Planning: how far a trigger may read, and which task reads what.

Works on snapshots of the admin service's answers. Everything counts *entries*, the unit that the
cluster knows; rows and bytes are estimated from an entry's mean, so that limits are soft by less
than one entry a partition. Ranges themselves are exact, down to messages within a batched entry.

Pure: no I/O, no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark_pulsar.offsets import WHOLE_ENTRY, Position, earliest


@dataclass(frozen=True, slots=True)
class LedgerSpan:
    """One ledger that the partition still holds; its entries are 0 to ``entries - 1``."""

    ledger_id: int
    entries: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """What the cluster said about one partition.

    ``ledgers`` are in order, the open one last. ``last_published`` is the (ledger id, entry id) of
    the last message that a reader can get, or was able to get before it was trimmed; None if there
    never was one. ``messages_per_entry`` is a mean, at least 1.
    """

    ledgers: tuple[LedgerSpan, ...]
    last_published: tuple[int, int] | None
    messages_per_entry: float = 1.0


@dataclass(frozen=True, slots=True)
class Due:
    """Entries of one ledger that lie in a range, both ends included."""

    ledger_id: int
    first_entry: int
    last_entry: int
    entry_bytes_mean: float

    @property
    def entries(self) -> int:
        """How many entries these are."""
        return self.last_entry - self.first_entry + 1


@dataclass(frozen=True, slots=True)
class ReadRange:
    """One task's work: the messages of ``topic`` in (start, end]. Travels to the worker.

    ``due`` is what lay in the range when it was planned: the task stops behind its last entry, and
    an entry of it that does not arrive starts the check for lost data.
    """

    topic: str
    start: Position
    end: Position
    due: tuple[Due, ...]


@dataclass(frozen=True, slots=True)
class RangePlan:
    """The tasks of one batch, and a sentence per partition whose unread messages are gone."""

    ranges: tuple[ReadRange, ...]
    losses: tuple[str, ...]


def end_position(topic: str, snapshot: TopicSnapshot) -> Position:
    """Behind the last message that ``topic`` holds.

    Behind the last entry of a closed ledger this is the start of the next ledger: a checkpoint
    that says so stays valid when the closed ledger is trimmed, and no loss is suspected then.
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


def due_entries(snapshot: TopicSnapshot, start: Position, end: Position) -> tuple[Due, ...]:
    """The entries in (start, end], ledger by ledger. A partly read entry at either end counts."""
    due: list[Due] = []
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
            due.append(Due(ledger.ledger_id, first, last, mean_bytes))
    return tuple(due)


def unread_loss(
    topic: str, snapshot: TopicSnapshot | None, start: Position, end: Position
) -> str | None:
    """A sentence if messages in (start, end] may be gone or ``topic`` is not what it was.

    A start whose ledger is gone is suspect unless it lies behind the last message published:
    nothing tells whether the vanished ledger had more entries.
    """
    if snapshot is None:
        return f"{topic} no longer exists; it was read up to {start}"
    if not snapshot.ledgers:
        return None
    oldest, newest = snapshot.ledgers[0], snapshot.ledgers[-1]
    last = snapshot.last_published
    all_read = last is not None and start.order_key >= Position(*last).order_key
    if 0 <= start.ledger_id < oldest.ledger_id and not all_read:
        return (
            f"{topic} was read up to {start}, but the oldest ledger it still holds is "
            f"{oldest.ledger_id}: messages between may have been trimmed"
        )
    beyond = max(start, end, key=lambda position: position.order_key)
    if _is_behind(beyond, newest):
        return (
            f"{topic} was read or planned up to {beyond}, but it ends at ledger "
            f"{newest.ledger_id} with {newest.entries} entries: it is not the same topic"
        )
    return None


def other_topic(topic: str, snapshot: TopicSnapshot, start: Position) -> str | None:
    """A sentence if ``topic`` never had the place ``start``, so that another one had this name.

    Ids of ledgers only grow and the oldest ledgers go first, so what lies before those that are
    held may have been trimmed. Behind their end, or between them, was nothing: the ids began anew,
    as they do in a cluster whose data was lost. The place before a ledger's first entry tells
    nothing there: a ledger that nothing was written to goes at any time.
    """
    if start.ledger_id < 0 or not snapshot.ledgers:
        return None
    oldest, newest = snapshot.ledgers[0], snapshot.ledgers[-1]
    if not _is_behind(start, newest):
        entries = {ledger.ledger_id: ledger.entries for ledger in snapshot.ledgers}
        if start.ledger_id < oldest.ledger_id or start.entry_id < entries.get(start.ledger_id, 0):
            return None
    return (
        f"{topic} was read up to {start}, a place that it never had (it ends at ledger "
        f"{newest.ledger_id} with {newest.entries} entries): it is not the same topic, and is read "
        "from its first message; messages of the former one may be gone"
    )


def begin_of(topic: str, snapshot: TopicSnapshot, start: Position, end: Position) -> Position:
    """Where the batch (``start``, ``end``] begins: at ``start``, or before the first message if it
    was planned when ``topic`` had become another one (:func:`other_topic`).

    Then ``end`` is a place of the topic that is there now. One that is not, as ``start``, was
    planned before.
    """
    if other_topic(topic, snapshot, end) is not None:
        return start
    if start.order_key > end.order_key or other_topic(topic, snapshot, start) is not None:
        return earliest(topic)
    return start


def _is_behind(position: Position, newest: LedgerSpan) -> bool:
    """Whether a position lies behind the last entry of the newest ledger."""
    return (position.ledger_id, position.entry_id) >= (newest.ledger_id, newest.entries)


def admit(
    starts: Mapping[str, Position],
    ends: Mapping[str, Position],
    snapshots: Mapping[str, TopicSnapshot],
    rows_max: int | None,
    bytes_max: int | None,
) -> dict[str, Position]:
    """How far this trigger reads: at most ``ends``, and within both limits.

    A limit is shared over the partitions by their backlog. Every partition with a backlog gets at
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
    """Entries per partition for ``rows_max`` rows in all, by backlog; the rest to the largest."""
    total = sum(rows.values())
    exact = {topic: rows_max * rows[topic] / total / per_entry[topic] for topic in rows}
    granted = {topic: int(exact[topic]) for topic in rows}
    spare = rows_max - sum(granted[topic] * per_entry[topic] for topic in rows)
    for topic in sorted(rows, key=lambda name: (granted[name] - exact[name], name)):
        if rows[topic] > 0 and per_entry[topic] <= spare:
            granted[topic] += 1
            spare -= per_entry[topic]
    return granted


def _entries_within(due: Sequence[Due], bytes_max: float) -> int:
    """How many of the entries come before ``bytes_max`` is used up."""
    count = 0
    for part in due:
        fit = int(bytes_max / part.entry_bytes_mean) if part.entry_bytes_mean > 0 else part.entries
        if fit < part.entries:
            return count + fit
        count += part.entries
        bytes_max -= part.entries * part.entry_bytes_mean
    return count


def position_after(due: Sequence[Due], entries: int, end: Position) -> Position:
    """The position behind the first ``entries`` of the due entries, never past ``end``."""
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
    """One task per partition with messages due, or more if ``partitions_min`` asks for it.

    A partition absent from ``starts`` is new and read from its first message. Large partitions
    are cut at entries, each piece in proportion to its share of all due entries.
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
    """``work`` cut into ``pieces`` ranges of nearly equal entries, in order and without a gap."""
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
            Due(part.ledger_id, part.first_entry, part.last_entry, means[part.ledger_id])
            for part in due_entries(snapshot, start, end)
        )
        if due:
            ranges.append(ReadRange(work.topic, start, end, due))
    return ranges
