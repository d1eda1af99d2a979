"""Takes the rows of one range from a topic's entries, each once and in order.

A task gets the entries behind the begin of its range from an :class:`EntryStream`. The range ends
with its last due entry, with an entry behind its end, or when the broker has no more. If due
entries do not arrive, the reader raises :class:`ReadTimeoutError`: it never returns a shorter
result.
"""

from __future__ import annotations

import logging
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import Protocol

import pyarrow as pa

from pyspark_pulsar.batches import Messages
from pyspark_pulsar.chunk_parts import ChunkParts, Headless, Joined
from pyspark_pulsar.columns import TIME_MS_MAX, Rows
from pyspark_pulsar.commands import StoredEntry
from pyspark_pulsar.entries import Entry, EntryId, Kind, parse_entry
from pyspark_pulsar.errors import ReadTimeoutError
from pyspark_pulsar.losses import entry_text, refuse_encrypted, report_loss
from pyspark_pulsar.missing import MissingRange, spread
from pyspark_pulsar.offsets import order_key
from pyspark_pulsar.ranges import ReadRange
from pyspark_pulsar.read_settings import ReadSettings

POLL_SLICE_S = 1.0
"""How long a task waits before it asks whether entries can still arrive."""

UNSENT_S = 3.0
"""Time without an entry after which a task asks what remains. Brokers before 4.0 count the marker
behind a transaction as the topic's last message, and never send it."""

PASSED_ENTRIES = 32
"""So many due entries that did not come before one that came are asked for again. A broker moves a
reader beyond entries that expired, by a message TTL or by a request of anybody who may consume."""

ASKED_ENTRIES = 8
"""Of so many of them it is asked whether readers get them."""

IN_VAIN_MAX = 3
"""How often a task asks for such entries again and gets none. A broker may filter entries."""

REPORTS_MAX = 64
"""Losses of a task that its log names one by one; of the others it has the number."""

log = logging.getLogger("pyspark_pulsar")


class Stream(Protocol):
    """What this module uses of :class:`pyspark_pulsar.entry_stream.EntryStream`."""

    def next_entry(self, timeout_s: float) -> StoredEntry | None: ...
    def taken(self, messages: int) -> None: ...
    def has_more(self) -> bool: ...
    def again(self, last: EntryId) -> None: ...
    @property
    def last_failure(self) -> str: ...


FindHead = Callable[[ChunkParts, Headless], Joined | Headless | None]
"""Finds the chunks of a message that are before those that came; None if they are not there. What
was asked for itself if the message was complete before: its producer sent its last chunks again."""

AreUnsent = Callable[[Sequence[MissingRange]], bool]
"""Whether it is known of all these entries that readers get none of them."""


class RangeReader:
    """Reads one range."""

    def __init__(
        self,
        stream: Stream,
        work: ReadRange,
        settings: ReadSettings,
        rows: Rows,
        find_head: FindHead,
        *,
        are_unsent: AreUnsent = lambda _: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``rows`` collects them; it is empty before and after."""
        self._stream = stream
        self._work = work
        self._settings = settings
        self._rows = rows
        self._find_head = find_head
        self._are_unsent = are_unsent
        self._monotonic = monotonic
        self._chunks = ChunkParts(settings.message_bytes_max)
        self._end_key = work.end.order_key
        self._ends = work.start[:2], self._end_key[:2]
        self._slice_s = min(POLL_SLICE_S, settings.poll_timeout_ms / 1_000)
        self._is_timed = (settings.starting_time_ms, settings.ending_time_ms) != (None, None)
        self._due = iter(work.due)
        self._ledger = next(self._due, None)
        self._expected = 0 if self._ledger is None else self._ledger.first_entry
        self.missing: list[MissingRange] = []
        """The due entries that did not arrive, in order. Complete after :meth:`batches`."""
        self._last: EntryId = work.start[:2]
        self._asked_again: EntryId | None = None
        self._in_vain = 0
        self._newest_ms = self._late_ms = 0
        self._first_encrypted: EntryId | None = None
        self._encrypted_count = self._losses = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of the range.

        Raises:
            DataLossError: an entry is malformed, or a message lacks chunks, and ``failOnDataLoss``
                is set.
            EncryptedError: an entry is encrypted, and ``failOnDataLoss`` is set.
            ReadTimeoutError: nothing arrived for ``pollTimeoutMs``.
        """
        end, bytes_max = self._end_key[:2], self._settings.message_bytes_max
        while self._ledger is not None:
            stored = self._stream.next_entry(self._slice_s) or self._next()
            if stored is None:
                break
            place = stored[:2]
            if place != (self._ledger.ledger_id, self._expected) and self._asks_again(place):
                continue
            if place > end:
                break
            entry = parse_entry(stored[2], bytes_max)
            self._stream.taken(entry.messages_claimed)
            self._arrived(place)
            if not self._add_usual(place, entry):
                yield from self._taken(place, entry)
        while self._ledger is not None:
            self._close_ledger()
        if self._rows.count:
            yield self._rows.batch()
        self._report_left_out()

    def _next(self) -> StoredEntry | None:
        """The next entry after a pause; None if no due one can follow.

        Half of the time is left to another reader: the broker may have moved this one to the end.
        """
        begin_s, poll_s = self._monotonic(), self._settings.poll_timeout_ms / 1_000
        deadline_s = begin_s + poll_s - self._slice_s
        ask_s = begin_s + min(UNSENT_S, poll_s / 2) - self._slice_s
        again_s = begin_s + poll_s / 2 - self._slice_s
        while self._stream.has_more():
            left_s = deadline_s - self._monotonic()
            stored = self._stream.next_entry(min(self._slice_s, max(left_s, 0.0)))
            if stored is not None:
                return stored
            if self._monotonic() >= ask_s:
                if self._are_unsent(self._remaining()):
                    return None
                ask_s = self._monotonic() + UNSENT_S
            if self._ledger is not None and self._monotonic() >= again_s:
                self._stream.again((self._ledger.ledger_id, self._expected - 1))
                again_s = math.inf
            if left_s <= 0:
                raise ReadTimeoutError(
                    f"{self._work.topic}: nothing arrived for {self._settings.poll_timeout_ms} ms "
                    f"(pollTimeoutMs), although messages up to {self._work.end} remain; "
                    f"read so far: {entry_text(self._last) if self._last[0] >= 0 else 'nothing'}"
                    f"{self._stream.last_failure and f'; {self._stream.last_failure}'}"
                )
        return None

    # -- entries that are due ------------------------------------------------------------------

    def _asks_again(self, place: EntryId) -> bool:
        """Whether the stream begins again at the due entries before one that came, which are many
        and not known to be such as readers never get. It does so once for each."""
        ledger = self._ledger
        if ledger is None or place[0] < ledger.ledger_id or self._in_vain >= IN_VAIN_MAX:
            return False
        first, before = (ledger.ledger_id, self._expected), self._due_before(place)
        if sum(part.entries for part in before) < PASSED_ENTRIES:
            return False
        if first == self._asked_again:
            self._in_vain += 1
            return False
        self._asked_again = first
        # Those that expired may have markers among them, also at both ends.
        asked = spread(before, ASKED_ENTRIES)
        if self._are_unsent([MissingRange(*entry, entry[1]) for entry in asked]):
            return False
        self._stream.again((ledger.ledger_id, self._expected - 1))
        return True

    def _due_before(self, place: EntryId) -> list[MissingRange]:
        """The due entries before one that came, which did not come."""
        if self._ledger is None:
            return []
        found: list[MissingRange] = []
        current = replace(self._ledger, first_entry=self._expected)
        for part in chain([current], copy(self._due)):
            if part.ledger_id > place[0]:
                break
            is_its = part.ledger_id == place[0]
            last = min(part.last_entry, place[1] - 1) if is_its else part.last_entry
            if part.first_entry <= last:
                found.append(MissingRange(part.ledger_id, part.first_entry, last))
        return found

    def _arrived(self, place: EntryId) -> None:
        """Note the due entries before one that came."""
        self._last = place
        ledger = self._ledger
        while ledger is not None and place > (ledger.ledger_id, ledger.last_entry):
            self._close_ledger()
            ledger = self._ledger
        if ledger is None or place[0] != ledger.ledger_id or place[1] < self._expected:
            return
        if place[1] > self._expected:
            self._note_missing(place[1])
        self._expected = place[1] + 1
        if place[1] == ledger.last_entry:
            self._close_ledger()

    def _remaining(self) -> list[MissingRange]:
        """The due entries behind the last one that came."""
        ledger = self._ledger
        if ledger is None:
            return []
        return [
            MissingRange(ledger.ledger_id, self._expected, ledger.last_entry),
            *(
                MissingRange(part.ledger_id, part.first_entry, part.last_entry)
                for part in self._work.due
                if part.ledger_id > ledger.ledger_id
            ),
        ]

    def _note_missing(self, before: int) -> None:
        if self._ledger is not None and self._expected < before:
            self.missing.append(MissingRange(self._ledger.ledger_id, self._expected, before - 1))

    def _close_ledger(self) -> None:
        """Continue with the next due ledger."""
        if self._ledger is not None:
            self._note_missing(self._ledger.last_entry + 1)
        self._ledger = next(self._due, None)
        self._expected = 0 if self._ledger is None else self._ledger.first_entry

    # -- what an entry gives -------------------------------------------------------------------

    def _add_usual(self, place: EntryId, entry: Entry) -> bool:
        """Add an entry that is usual in every way: within the range, of any time, and with room."""
        payload = entry.usual
        if payload is None or self._is_timed or place in self._ends:
            return False
        return self._rows.add_usual(place, payload, entry.publish_time_ms)

    def _taken(self, place: EntryId, entry: Entry) -> Iterator[pa.RecordBatch]:
        match entry.kind:
            case Kind.MESSAGES:
                yield from self._add(place, place, entry)
            case Kind.CHUNK:
                yield from self._add_chunk(place, entry)
            case Kind.ENCRYPTED:
                fail = self._settings.fail_on_data_loss
                refuse_encrypted(self._work.topic, place, fail=fail)
                self._encrypted_count += 1
                self._first_encrypted = self._first_encrypted or place
            case Kind.MALFORMED:
                self._report(f"entry {entry_text(place)} is malformed ({entry.why})")
            case Kind.MARKER:
                pass

    def _add_chunk(self, place: EntryId, entry: Entry) -> Iterator[pa.RecordBatch]:
        if entry.chunk is None:
            return
        found = self._chunks.add(place, entry.chunk)
        if isinstance(found, Headless):
            headless = found
            found = self._find_head(self._chunks, headless)
            if not isinstance(found, Joined):
                self._chunks.forget(headless.uuid)
            if found is None:
                self._report(
                    f"the message that ends in {entry_text(place)} cannot be read: not all of its "
                    "chunks are stored, or too many other entries are between two of them"
                )
        if not isinstance(found, Joined):
            return
        if found.entry.kind is Kind.MALFORMED:
            text = f"the message that ends in {entry_text(place)} is malformed ({found.entry.why})"
            self._report(text)
            return
        yield from self._add(place, found.first, found.entry)

    def _add(self, place: EntryId, first: EntryId, entry: Entry) -> Iterator[pa.RecordBatch]:
        """Add the messages of an entry. ``first`` is where they begin."""
        if self._is_timed and not self._is_in_time(entry.publish_time_ms):
            return
        is_at_end = place in self._ends
        for messages in entry.portions(self._rows.rows_max):
            rest = self._within(place, messages) if is_at_end else messages
            while rest.values:
                fit = self._rows.fitting(rest.values)
                if fit == len(rest.values):
                    self._rows.add(place, first, entry, rest)
                    break
                if fit:
                    self._rows.add(place, first, entry, rest.part(0, fit))
                yield self._rows.batch()
                rest = rest.part(fit, len(rest.values))

    def _within(self, place: EntryId, messages: Messages) -> Messages:
        """Those of an entry at an end of the range that belong to it."""
        begin, end = self._work.start.order_key, self._end_key
        keys = [order_key(*place, index) for index in messages.batch_indexes]
        return messages.part(bisect_right(keys, begin), bisect_right(keys, end))

    def _is_in_time(self, publish_ms: int) -> bool:
        since_ms, until_ms = self._settings.starting_time_ms, self._settings.ending_time_ms
        if publish_ms <= self._newest_ms:
            self._late_ms = max(self._late_ms, self._newest_ms - publish_ms)
        elif publish_ms <= TIME_MS_MAX:
            self._newest_ms = publish_ms
        return (since_ms is None or publish_ms >= since_ms) and (
            until_ms is None or publish_ms < until_ms
        )

    # -- reports -------------------------------------------------------------------------------

    def _report(self, what: str) -> None:
        """Raise :class:`DataLossError`, or log what is left out; the first ones by name."""
        self._losses += 1
        fail = self._settings.fail_on_data_loss
        if fail or self._losses <= REPORTS_MAX:
            report_loss(f"{self._work.topic}: {what}", fail=fail)

    def _report_left_out(self) -> None:
        if self._losses > REPORTS_MAX:
            more = self._losses - REPORTS_MAX
            report_loss(f"{self._work.topic}: {more} more such entries are left out", fail=False)
        if self._first_encrypted:
            count = self._encrypted_count
            refuse_encrypted(self._work.topic, self._first_encrypted, fail=False, count=count)
        if self._late_ms > self._settings.publish_time_skew_ms:
            log.warning(
                "%s: messages were published up to %d ms before others that are stored in front of "
                "them. The search for startingTime and endingTime extends by publishTimeSkewMs, "
                "%d ms, and may miss such messages",
                self._work.topic,
                self._late_ms,
                self._settings.publish_time_skew_ms,
            )
