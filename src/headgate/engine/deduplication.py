"""Message deduplication of one loaded topic: a message that was stored before is not stored again.

A message is a duplicate if its sequence id is not above the highest one that its producer stored,
by the producer's name (:class:`headgate.base.sequence_table.SequenceTable`). Of a batch the id of
the first message counts, of a message in chunks only the last chunk.

A duplicate gets a receipt without a message id, behind the receipts of what its producer sent
before. It passes no limit and no quota, because it takes no room, and is charged to none. If the
first attempt is staged and not durable, nobody knows yet whether it will be stored: then the
producer is closed with an error, as in Pulsar, and its client sends again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol
from weakref import WeakValueDictionary

from headgate.base.names import TopicName
from headgate.base.owner_shares import level_of
from headgate.base.positions import Position
from headgate.base.sequence_table import Seen, SequenceTable, SequenceTotal
from headgate.base.units import INT64_MAX, MIB
from headgate.engine.ports import EntryLog
from headgate.engine.producer import Producer

NO_MESSAGE: Final = Position(-1, -1)
"""The message id in the receipt of a duplicate, as in Pulsar."""

UNTRACKED: Final = -(1 << 63) - 1
"""Deduplication ignores an entry: below every sequence id."""

_STORED = Seen.STORED

SEQUENCES_OF_TENANT_BYTES_MAX: Final = 128 * MIB
"""What the topics of a tenant remember of producers, half a million with names of 60 characters,
and half as much again; those that take less than the others on average go on up to twice that."""

SEQUENCES_PART_MIN: Final = 1 / 4
"""The least part of that, however short the memory of the process is: who is forgotten may store a
message twice, which is nothing that one tenant should be able to bring about for another."""


class SequenceTotals:
    """What the tables of each tenant take, those of unloaded topics included."""

    def __init__(self) -> None:
        self._by_tenant: WeakValueDictionary[str, SequenceTotal] = WeakValueDictionary()

    def join(self, table: SequenceTable, name: TopicName) -> None:
        """Count the table of a topic or partition for its tenant, until it leaves."""
        tenant = name.tenant
        total = self._by_tenant.get(tenant)
        if total is None:
            total = self._by_tenant[tenant] = SequenceTotal(SEQUENCES_OF_TENANT_BYTES_MAX)
        table.join(total, name.base.full)

    def use_part(self, part: float) -> None:
        """The memory of the process leaves this part of their bounds to the tenants that remember
        most, and :data:`SEQUENCES_PART_MIN` in any case. Call it at each measurement."""
        totals = list(self._by_tenant.values())
        least = level_of([total.held_bytes for total in totals])
        for total in totals:
            total.part = max(part, SEQUENCES_PART_MIN) if total.held_bytes >= least else 1.0

    @property
    def all_bytes(self) -> int:
        """What the tables of all tenants take."""
        return sum(total.held_bytes for total in list(self._by_tenant.values()))

    def held_bytes(self, tenant: str) -> int:
        """What all tables of a tenant take."""
        total = self._by_tenant.get(tenant)
        return 0 if total is None else total.held_bytes


class DeduplicatingEngine(Protocol):
    """The engine, as far as deduplication needs it."""

    log_ms: int
    duplicates_dropped: int

    @property
    def effects(self) -> SequenceReader:
        """What reads entries."""


class SequenceReader(Protocol):
    """The shell, as far as deduplication needs it."""

    def sequence_of(self, body: bytes, /) -> tuple[str, int, int] | None:
        """The producer's name and the first and last sequence id in an entry's metadata; None if
        deduplication ignores the entry."""

    def name_test(self, name: str, /) -> Callable[[bytes], object]:
        """A quick test of entries: true only for those that name this producer."""


class DeduplicatedTopic(Protocol):
    """The publish side of the topic, as far as deduplication needs it."""

    staged_bytes: int
    admit_below: int
    duplicates_dropped: int


class Deduplication:
    """Finds duplicates, and answers them in the order of their producers' SENDs."""

    __slots__ = ("_engine", "_log", "_publishing", "_waiting", "table")

    def __init__(
        self,
        publishing: DeduplicatedTopic,
        engine: DeduplicatingEngine,
        log: EntryLog,
        table: SequenceTable,
    ) -> None:
        self._publishing = publishing
        self._engine = engine
        self._log = log
        self.table: SequenceTable | None = table
        """What the topic's producers stored. None once deduplication was turned off: then this
        object only answers the duplicates that wait."""
        self._waiting: deque[tuple[int, Producer, int, int]] | None = None
        """Duplicates that wait for the receipts of other SENDs: each with the ordinal below which
        entries must be answered before it, its producer and its ids. Created with the first."""

    @property
    def is_over(self) -> bool:
        """Whether it was turned off and nothing waits."""
        return self.table is None and not self._waiting

    # One SEND -------------------------------------------------------------------------------

    def check(
        self,
        producer: Producer,
        sequence_id: int,
        highest_sequence_id: int,
        message_count: int,
        body: bytes,
    ) -> int | None:
        """Decide about a SEND before it is admitted.

        Returns the highest sequence id of a new message, or :data:`UNTRACKED` if the SEND is not
        checked. None: it must not be stored. It was answered or its answer waits, or its producer
        was closed.
        """
        table = self.table
        if table is None:
            return UNTRACKED
        publishing = self._publishing
        if (producer.parked or producer.ending) and (
            publishing.staged_bytes >= publishing.admit_below
        ):
            return UNTRACKED  # it is parked behind others, and checked when its turn comes
        name = producer.name
        names_itself = producer.names_itself
        if names_itself is None:
            names_itself = producer.names_itself = self._engine.effects.name_test(name)
        first_id = sequence_id
        last_id = first_id if highest_sequence_id < first_id else highest_sequence_id
        # Above it a command means a negative number, as its field has no sign.
        if last_id > INT64_MAX or producer.chunks_published or not names_itself(body):
            sequence = self._engine.effects.sequence_of(body)
            if sequence is None:
                return UNTRACKED
            if sequence[0] != name:
                # A start would count the entry for that other producer.
                self._refuse(
                    producer,
                    sequence_id,
                    f"an entry names its producer {sequence[0][:80]!r}, not {name!r}",
                )
                return None
            _, first_id, last_id = sequence
        last = table.staged.get(name)  # as SequenceTable.seen, without the call: the hot path
        if last is None:
            last = table.last.get(name)
        if last is None or first_id > last:
            return last_id
        if table.seen(name, first_id) is _STORED:
            self._drop(producer, (sequence_id, highest_sequence_id), message_count)
        else:
            self._refuse(
                producer,
                sequence_id,
                "Cannot determine whether the message is a duplicate: the sequence id "
                f"{first_id} of producer {name!r} is being stored",
            )
        return None

    def _drop(self, producer: Producer, ids: tuple[int, int], message_count: int) -> None:
        publishing, port = self._publishing, producer.port
        producer.duplicates_dropped += message_count
        self._engine.duplicates_dropped += message_count
        publishing.duplicates_dropped += message_count
        port.send_staged()  # it is counted as unanswered
        if not producer.pending_count:
            port.send_receipt(producer.producer_id, *ids, NO_MESSAGE)
            return
        producer.pending_count += 1
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append((self._log.staged_end, producer, *ids))

    @staticmethod
    def _refuse(producer: Producer, sequence_id: int, reason: str) -> None:
        producer.port.send_refused(producer.producer_id, sequence_id, reason)

    # The outcome of a commit ------------------------------------------------------------------

    def answer_in_order(self, first: int, end: int, answer: Callable[[int, int], None]) -> None:
        """Answer the entries from ``first`` to ``end``, which are durable, by calls of ``answer``,
        and in between the duplicates that waited for them."""
        if self.table is not None:
            self.table.entries_durable(end)
        waiting = self._waiting
        while waiting and waiting[0][0] <= end:
            ordinal, producer, sequence_id, highest_sequence_id = waiting.popleft()
            if first < ordinal:
                answer(first, ordinal)
                first = ordinal
            producer.pending_count -= 1
            if not producer.closed:
                ids = (sequence_id, highest_sequence_id)
                producer.port.send_receipt(producer.producer_id, *ids, NO_MESSAGE)
        answer(first, end)

    def entries_lost(self, reason: str) -> None:
        """The staged entries will not be stored as they are. Close the producers of duplicates that
        wait: their clients send again, in order."""
        if self.table is not None:
            self.table.entries_lost()
        waiting, self._waiting = self._waiting, None
        for _, producer, sequence_id, _ in waiting or ():
            if not producer.closed:
                self._refuse(producer, sequence_id, reason)

    # Producers ----------------------------------------------------------------------------------

    def connected(self, producer: Producer) -> None:
        """A producer is connected to the topic."""
        if self.table is not None:
            self.table.connected(producer.name)

    def disconnected(self, producer: Producer) -> None:
        """A producer is no longer connected to the topic."""
        if self.table is not None:
            self.table.disconnected(producer.name, self._engine.log_ms)
