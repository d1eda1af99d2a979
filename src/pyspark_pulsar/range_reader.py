"""Receives the messages of one range from a client's reader, each once and in order.

Exactness does not depend on the client. A task drops a message unless it comes after the last one
that it accepted. So neither a partly read entry at the start nor a redelivery after a reconnect
gives a duplicate row. The range ends when its last due message is accepted, when a message after
the end arrives, or when the client reports that nothing follows. If due messages do not arrive, the
reader raises :class:`ReadTimeoutError`; it never returns a shorter result.
"""

from __future__ import annotations

import logging
import operator
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import pulsar
import pyarrow as pa

from pyspark_pulsar.chunks import EntryId, MissingRange
from pyspark_pulsar.client import ReadSettings, entry_bytes
from pyspark_pulsar.columns import TIME_MS_MAX, Message, MessageId, Rows
from pyspark_pulsar.errors import MalformedEntryError, ReadTimeoutError, StalledReaderError
from pyspark_pulsar.offsets import WHOLE_ENTRY, OrderKey, Position, batch_size_of
from pyspark_pulsar.ranges import ReadRange

BATCH_ROWS_MAX = 10_000
BATCH_BYTES_MAX = 1024 * 1024
"""A record batch ends at either limit; a larger message is a batch alone."""

POLL_SLICE_MS = 1_000
"""How long the client waits before the task checks whether messages can still arrive."""

PORTION_MESSAGES_MAX = 256
PORTION_BYTES_MAX = 128 * 1024
"""Messages that are processed together: many enough for speed, few enough for the caches."""

STEP_MESSAGES_MAX = 20_000
"""Most messages of one step: so many are read again if the client's process ends."""

log = logging.getLogger("pyspark_pulsar")


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a range that is read."""

    batch: pa.RecordBatch | None
    """Its rows, not empty; None if it has none."""
    reached: Position
    """Its last message, or the whole entry with it; the start of the range if there is none."""
    missing: tuple[MissingRange, ...]
    """The due entries up to ``reached`` that gave no message, without those of earlier steps."""


class Reader(Protocol):
    """What this module uses of a client's reader."""

    def read_next(self, timeout_millis: int) -> Message: ...
    def has_message_available(self) -> bool: ...
    def close(self) -> None: ...


class RangeReader:
    """Receives the messages of one range, each once and in order.

    The key of a message is its (ledger id, entry id, batch index). Almost every message is between
    the last one accepted and the last due entry of the current ledger, the *boundary*. So the
    reader receives portions that end before it. A portion without gaps is accepted as a whole; in
    any other, the reader checks each message.
    """

    def __init__(
        self,
        reader: Reader,
        work: ReadRange,
        settings: ReadSettings,
        *,
        will_not_come: Callable[[Sequence[MissingRange]], bool] = lambda _: False,
        messages_max: int | None = None,
        malformed_of: Callable[[list[EntryId]], EntryId | None] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``will_not_come``: whether none of these entries gives a message to a reader that begins
        with the range; called if nothing arrives. ``messages_max``: each message is a step, and
        after so many behind the start of the range the reader stops; None for large steps until
        the end. ``malformed_of``: the first of these batches that is malformed; None if batches
        are taken as the client takes them apart."""
        self._reader = reader
        self._work = work
        self._settings = settings
        self._will_not_come = will_not_come
        self._messages_left = messages_max
        self._malformed_of = malformed_of
        self._checked: EntryId | None = None
        self._monotonic = monotonic
        self._slice_ms = min(POLL_SLICE_MS, settings.poll_timeout_ms)
        self._is_timed = (settings.starting_time_ms, settings.ending_time_ms) != (None, None)
        self._portion = max(1, int(PORTION_BYTES_MAX / entry_bytes(work)))
        self._accepted: OrderKey = work.start.order_key
        self._accepted_id: MessageId | None = None
        self._due_index = 0
        self._boundary = self._boundary_of(0)
        self._expected = work.due[0].first_entry if work.due else 0
        self._holes: list[MissingRange] = []
        self._holes_told = 0
        self._newest_ms = self._late_ms = 0
        self._finished = False

    @property
    def is_stopped(self) -> bool:
        """Whether it stopped before the end of the range."""
        return self._messages_left == 0 and not self._finished

    def steps(self, rows: Rows) -> Iterator[Step]:
        """The messages of the range.

        ``rows`` collects them; it is empty before and after.

        Raises :class:`ReadTimeoutError`, and what ``will_not_come`` raises: after a step with all
        that arrived, if the task goes on behind it. Raises :class:`MemoryError` if the client
        dropped a message of a batch, which is noticed where each message is a step.
        """
        try:
            yield from self._steps(rows)
        except (MalformedEntryError, StalledReaderError):
            yield self._step(rows, self._accepted_id)
            raise
        if self._messages_left and not self._is_at_end_of_entry():
            raise MemoryError
        if rows.count:
            yield self._step(rows, self._accepted_id)
        if self._late_ms > self._settings.publish_time_skew_ms:
            log.warning(
                "%s: messages were published up to %d ms before others that are stored in front of "
                "them. The search for startingTime and endingTime extends by publishTimeSkewMs, "
                "%d ms, and may miss such messages",
                self._work.topic,
                self._late_ms,
                self._settings.publish_time_skew_ms,
            )

    def _steps(self, rows: Rows) -> Iterator[Step]:
        """All steps but the last one, whose rows remain in ``rows``."""
        unread_count = 0
        for messages in self._arrivals():
            unread_count += len(messages)
            ids = [message.message_id() for message in messages]
            malformed = self._first_malformed(ids)
            if malformed is not None:
                fit = [_key_of(each)[:2] for each in ids].index(malformed)
                messages, ids = messages[:fit], ids[:fit]
                if not messages:
                    raise MalformedEntryError(*malformed)
            if self._messages_left is not None:
                self._check_batch(ids[0])
                self._messages_left -= _key_of(ids[0]) > self._accepted
            last = self._accepted_id
            if not self._accept_run(ids):
                messages, ids = _selected(self._wanted(ids), messages, ids)
            if self._is_timed:
                messages, ids = _selected(self._in_time(messages), messages, ids)
            values = [message.data() for message in messages]
            while values:
                fit = rows.fitting(values, BATCH_ROWS_MAX, BATCH_BYTES_MAX)
                rows.add(messages[:fit], ids[:fit], values[:fit])
                if fit:  # else the rows of earlier portions fill the batch
                    last = ids[fit - 1]
                messages, ids, values = messages[fit:], ids[fit:], values[fit:]
                if values:
                    unread_count = len(values)
                    yield self._step(rows, last)
            if unread_count >= STEP_MESSAGES_MAX or self._messages_left is not None:
                unread_count = 0
                yield self._step(rows, self._accepted_id)
            if malformed is not None:
                raise MalformedEntryError(*malformed)

    def _first_malformed(self, ids: Sequence[MessageId]) -> EntryId | None:
        """The first malformed batch of the range among those of these messages."""
        if self._malformed_of is None:
            return None
        end = self._work.end.order_key
        keys = (_key_of(each) for each in ids if each.batch_index() >= 0)
        batches = dict.fromkeys(key[:2] for key in keys if self._accepted < key <= end)
        batches.pop(self._checked or (-1, -1), None)
        if not batches:
            return None
        found = self._malformed_of(list(batches))
        self._checked = list(batches)[-1]
        return found

    def _check_batch(self, message_id: MessageId) -> None:
        """Raise :class:`MemoryError` if a message of a batch is missing between the last accepted
        one and this. The client drops one whose listener has no memory."""
        key = _key_of(message_id)
        if key[:2] == self._accepted[:2]:
            is_next = key[2] <= self._accepted[2] + 1
        else:
            is_next = key < self._accepted or (key[2] <= 0 and self._is_at_end_of_entry())
        if not is_next:
            raise MemoryError

    def _is_at_end_of_entry(self) -> bool:
        last = self._accepted_id
        return last is None or _ends_entry(last, self._accepted, self._work.end.order_key)

    def _step(self, rows: Rows, last: MessageId | None) -> Step:
        """The collected rows, and the way to ``last``."""
        reached = self._work.start
        if last is not None:
            key = _key_of(last)
            index = WHOLE_ENTRY if _ends_entry(last, key, self._work.end.order_key) else key[2]
            reached = Position(key[0], key[1], reached.partition, index)
        told = self._holes_told
        while self._holes_told < len(self._holes):
            hole = self._holes[self._holes_told]
            if (hole.ledger_id, hole.last_entry) >= reached[:2]:
                break
            self._holes_told += 1
        missing = tuple(self._holes[told : self._holes_told])
        return Step(rows.batch() if rows.count else None, reached, missing)

    def _arrivals(self) -> Iterator[list[Message]]:
        """The messages in portions, until the range is finished or nothing can follow."""
        last: MessageId | None = None
        while not self._finished and self._messages_left != 0:
            messages, timed_out = self._receive(self._safe_count(last))
            if messages:
                last = messages[-1].message_id()
                yield messages
            if timed_out and not self._finished:
                message = self._wait_on(last)
                if message is None:
                    return
                last = message.message_id()
                yield [message]

    def _receive(self, count: int) -> tuple[list[Message], bool]:
        """Up to ``count`` messages, and whether the client timed out before that."""
        read_next, slice_ms = self._reader.read_next, self._slice_ms
        messages: list[Message] = []
        try:
            for _ in range(count):
                messages.append(read_next(slice_ms))
        except pulsar.Timeout:
            return messages, True
        return messages, False

    def _safe_count(self, last: MessageId | None) -> int:
        """How many messages to receive without waiting for one after the end; at least one.

        Each due entry gives at least one message. ``last``, the newest message, shows how many
        remain in its entry. The client holds these already, so the limit of bytes applies only to
        the entries after it.
        """
        if self._due_index >= len(self._work.due) or self._messages_left is not None:
            return 1
        entries = self._work.due[self._due_index].last_entry - self._expected
        left = 0
        if last is not None and last.batch_index() >= 0:
            left = batch_size_of(last.serialize()) - 1 - last.batch_index()
        return max(1, min(PORTION_MESSAGES_MAX, min(self._portion, entries) + left))

    def _accept_run(self, ids: Sequence[MessageId]) -> bool:
        """Accept messages as a whole if they are consecutive and before the boundary.

        Returns False and accepts none if each must be checked: some are not in order, or entries
        between them are missing.
        """
        first, last = _key_of(ids[0]), _key_of(ids[-1])
        if not (self._accepted < first and last < self._boundary and first[0] == self._boundary[0]):
            return False
        entries = [message_id.entry_id() for message_id in ids]
        every_entry = range(first[1], last[1] + 1)
        # One message per entry is the common case, and needs no comparison of ids.
        if entries != list(every_entry) and (
            len(set(entries)) != len(every_entry)
            or not all(map(operator.lt, ids, islice(ids, 1, None)))
        ):
            return False
        self._note_missing(first[1])
        self._accepted, self._accepted_id = last, ids[-1]
        self._expected = last[1] + 1
        return True

    def _wanted(self, ids: Sequence[MessageId]) -> list[int]:
        """Check messages one by one; the indexes of those that belong to the range."""
        wanted: list[int] = []
        for index, message_id in enumerate(ids):
            if self._accept(_key_of(message_id), message_id):
                wanted.append(index)
            if self._finished:
                break
        return wanted

    def _in_time(self, messages: Sequence[Message]) -> list[int]:
        """The indexes of messages published within the times; notes the largest delay."""
        since_ms, until_ms = self._settings.starting_time_ms, self._settings.ending_time_ms
        wanted: list[int] = []
        for index, message in enumerate(messages):
            publish_ms = message.publish_timestamp()
            if publish_ms <= self._newest_ms:
                self._late_ms = max(self._late_ms, self._newest_ms - publish_ms)
            elif publish_ms <= TIME_MS_MAX:
                self._newest_ms = publish_ms
            if (since_ms is None or publish_ms >= since_ms) and (
                until_ms is None or publish_ms < until_ms
            ):
                wanted.append(index)
        return wanted

    def missing_ranges(self) -> list[MissingRange]:
        """The due entries that gave no message, in order, without those of the steps; none if the
        reader stopped. Call this after :meth:`steps`."""
        while self._due_index < len(self._work.due) and not self.is_stopped:
            self._close_ledger()
        return self._holes[self._holes_told :]

    def _rest(self) -> list[MissingRange]:
        """The due entries after the last one that gave a message."""
        due = self._work.due[self._due_index :]
        firsts = [self._expected, *(part.first_entry for part in due[1:])]
        return [
            MissingRange(part.ledger_id, first, part.last_entry)
            for part, first in zip(due, firsts, strict=False)
            if first <= part.last_entry
        ]

    def _note_missing(self, before_entry: int) -> None:
        """Note the entries of the current ledger from the expected one to ``before_entry`` as
        missing."""
        part = self._work.due[self._due_index]
        last = min(before_entry - 1, part.last_entry)
        if self._expected <= last:
            self._holes.append(MissingRange(part.ledger_id, self._expected, last))

    def _close_ledger(self) -> None:
        """Continue with the next due ledger."""
        due = self._work.due
        self._note_missing(due[self._due_index].last_entry + 1)
        self._due_index += 1
        self._boundary = self._boundary_of(self._due_index)
        self._expected = due[self._due_index].first_entry if self._due_index < len(due) else 0

    def _boundary_of(self, due_index: int) -> OrderKey:
        """The key just before a ledger's last due entry; the lowest key after the last ledger."""
        if due_index >= len(self._work.due):
            return (-1, -1, -1)
        part = self._work.due[due_index]
        return (part.ledger_id, part.last_entry, -1)

    def _accept(self, key: OrderKey, message_id: MessageId) -> bool:
        """Whether a message belongs to the range and was not accepted before.

        Notes missing entries, the end of a ledger, and the end of the range.
        """
        if key <= self._accepted:
            return False
        if key > self._work.end.order_key:
            self._finished = True
            return False
        self._accepted, self._accepted_id = key, message_id
        while self._due_index < len(self._work.due) and key[:2] > self._boundary[:2]:
            self._close_ledger()
        if self._due_index < len(self._work.due) and key[0] == self._boundary[0]:
            self._note_missing(key[1])
            self._expected = key[1] + 1
        if key[:2] == self._boundary[:2]:
            last_ledger = self._due_index + 1 == len(self._work.due)
            self._finished = last_ledger and _ends_entry(message_id, key, self._work.end.order_key)
        return True

    def _wait_on(self, last: MessageId | None) -> Message | None:
        """The next message after a time-out of the client; None if none can follow.

        ``last`` is the previous message. If all remaining entries are chunks, their message is
        incomplete and belongs to a later range, so the task does not wait for it. Nor does it wait
        for encrypted messages, which the client drops.

        Raises :class:`ReadTimeoutError` if no message arrives within ``pollTimeoutMs``, and
        :class:`EncryptedError`.
        """
        if last is None or _ends_entry(last, self._accepted, self._work.end.order_key):
            rest = self._rest()
            if rest and self._will_not_come(rest):
                return None
        rest_s = (self._settings.poll_timeout_ms - self._slice_ms) / 1_000
        deadline = self._monotonic() + rest_s
        while self._may_follow():
            if self._monotonic() >= deadline:
                raise ReadTimeoutError(
                    f"{self._work.topic}: nothing arrived for {self._settings.poll_timeout_ms} ms "
                    f"(pollTimeoutMs), although messages up to {self._work.end} remain; "
                    f"read so far: {_key_text(self._accepted)}. Encrypted messages never arrive, "
                    "because this source has no keys"
                )
            try:
                return self._reader.read_next(self._slice_ms)
            except pulsar.Timeout:
                continue
        return None

    def _may_follow(self) -> bool:
        """Whether a message can still arrive; True if the broker does not answer."""
        try:
            return self._reader.has_message_available()
        except pulsar.PulsarException as error:
            log.info("%s: the broker does not answer (%s)", self._work.topic, error)
            return True


def _ends_entry(message_id: MessageId, key: OrderKey, end: OrderKey) -> bool:
    """Whether this message is the last of its entry within the range."""
    if key == end or message_id.batch_index() < 0:
        return True
    return message_id.batch_index() + 1 == batch_size_of(message_id.serialize())


def _key_of(message_id: MessageId) -> OrderKey:
    return (message_id.ledger_id(), message_id.entry_id(), message_id.batch_index())


def _selected(
    places: Sequence[int], messages: Sequence[Message], ids: Sequence[MessageId]
) -> tuple[list[Message], list[MessageId]]:
    return [messages[place] for place in places], [ids[place] for place in places]


def _key_text(key: OrderKey) -> str:
    """A key as text for an error message."""
    return str(Position(key[0], key[1])) if key[0] >= 0 else "nothing"
