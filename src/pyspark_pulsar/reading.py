"""One task: receive the messages of a range and yield them as Arrow record batches.

Exactness does not rest on the client: a message is dropped unless it lies behind the last one
taken, so that neither the start's partly read entry nor a redelivery after a reconnect gives a row
twice. The task is done when the last message due has been taken, when a message behind the end
arrives, or when the client says that nothing follows. Silence while messages are due ends in
:class:`ReadTimeoutError`, never in a shorter result.

Entries that were planned and gave no message are lost only if the topic no longer holds them. They
may also be transaction markers or aborted messages, which no reader gets, or chunks of a message
(:mod:`pyspark_pulsar.chunks`), so the admin service is asked before loss is claimed.
"""

from __future__ import annotations

import logging
import operator
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Protocol

import pulsar
import pyarrow as pa

from pyspark_pulsar.chunks import (
    ENTRIES_BETWEEN_MAX,
    Chunk,
    Hole,
    Other,
    Place,
    first_chunk,
    places_of,
    portions,
    still_held,
)
from pyspark_pulsar.client import ReadSettings, entry_bytes, open_reader, without_wrapper
from pyspark_pulsar.columns import TIME_MS_MAX, Message, MessageId, Rows
from pyspark_pulsar.errors import AdminError, DataLossError, ReadTimeoutError
from pyspark_pulsar.keys import KeyKind, Keys, MessagePlace
from pyspark_pulsar.offsets import WHOLE_ENTRY, OrderKey, Position, batch_size_of
from pyspark_pulsar.ranges import Due, LedgerSpan, ReadRange

BATCH_ROWS_MAX = 10_000
BATCH_BYTES_MAX = 1024 * 1024
"""A record batch ends at either limit; one larger message makes a batch of its own."""

POLL_SLICE_MS = 1_000
"""How long the client waits before the task looks whether anything can still come."""

PORTION_MESSAGES_MAX = 256
PORTION_BYTES_MAX = 128 * 1024
"""What is received before it is looked at: enough to share the work, few enough for the caches."""

log = logging.getLogger("pyspark_pulsar")


class Reader(Protocol):
    """What this module uses of a client's reader."""

    def read_next(self, timeout_millis: int) -> Message: ...
    def has_message_available(self) -> bool: ...
    def close(self) -> None: ...


class Stored(Protocol):
    """What this module asks the admin service."""

    def ledgers(self, topic: str) -> tuple[LedgerSpan, ...]: ...
    def entries(self, topic: str, places: Iterable[Place]) -> dict[Place, Chunk | Other]: ...
    def key_kinds(
        self, topic: str, places: Iterable[MessagePlace]
    ) -> dict[MessagePlace, KeyKind | None]: ...


class RangeReader:
    """Takes the messages of one range from a reader, each once and in order.

    A message's key is its (ledger id, entry id, batch index) as the client says it. Almost every
    message lies between the last one taken and the last entry due of the current ledger, the
    *border*. So messages are received in portions that do not reach behind it, and a portion in
    which each follows the one before is taken as a whole; others are looked at one by one.
    """

    def __init__(
        self,
        reader: Reader,
        work: ReadRange,
        settings: ReadSettings,
        *,
        are_chunks: Callable[[Sequence[Hole]], bool] = lambda _: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``are_chunks``: whether entries are chunks one and all; asked after silence."""
        self._reader = reader
        self._work = work
        self._settings = settings
        self._are_chunks = are_chunks
        self._monotonic = monotonic
        self._slice_ms = min(POLL_SLICE_MS, settings.poll_timeout_ms)
        self._is_timed = (settings.starting_time_ms, settings.ending_time_ms) != (None, None)
        self._portion = max(1, int(PORTION_BYTES_MAX / entry_bytes(work)))
        self._taken: OrderKey = work.start.order_key
        self._due_index = 0
        self._border = self._border_of(0)
        self._expected = work.due[0].first_entry if work.due else 0
        self._holes: list[Hole] = []
        self._newest_ms = self._late_ms = 0
        self._finished = False

    def batches(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        """The range's messages as record batches, none of them empty; made of ``rows``, which is
        empty before and after."""
        for messages in self._arrivals():
            ids = [message.message_id() for message in messages]
            if not self._take_run(ids):
                messages, ids = _picked(self._wanted(ids), messages, ids)
            if self._is_timed:
                messages, ids = _picked(self._in_time(messages), messages, ids)
            values = [message.data() for message in messages]
            while values:
                fit = rows.fitting(values, BATCH_ROWS_MAX, BATCH_BYTES_MAX)
                rows.add(messages[:fit], ids[:fit], values[:fit])
                messages, ids, values = messages[fit:], ids[fit:], values[fit:]
                if values:
                    yield rows.batch()
        if rows.count:
            yield rows.batch()
        if self._late_ms > self._settings.publish_time_skew_ms:
            log.warning(
                "%s: messages were published up to %d ms before others that are stored in front of "
                "them. startingTime and endingTime are searched publishTimeSkewMs, %d ms, further "
                "than asked, and may leave such messages out",
                self._work.topic,
                self._late_ms,
                self._settings.publish_time_skew_ms,
            )

    def _arrivals(self) -> Iterator[list[Message]]:
        """What arrives, in portions, until the range is finished or nothing can follow."""
        last: MessageId | None = None
        while not self._finished:
            messages, is_silent = self._receive(self._safe_count(last))
            if messages:
                last = messages[-1].message_id()
                yield messages
            if is_silent and not self._finished:
                message = self._wait_on(last)
                if message is None:
                    return
                last = message.message_id()
                yield [message]

    def _receive(self, count: int) -> tuple[list[Message], bool]:
        """Up to ``count`` messages, and whether silence came before there were so many."""
        read_next, slice_ms = self._reader.read_next, self._slice_ms
        messages: list[Message] = []
        try:
            for _ in range(count):
                messages.append(read_next(slice_ms))
        except pulsar.Timeout:
            return messages, True
        return messages, False

    def _safe_count(self, last: MessageId | None) -> int:
        """How many messages can be waited for without waiting behind the end; at least one.

        Each entry gives one or more; ``last``, the last to come, tells how many its own has left.
        Those are held already: what a portion may be by its bytes counts for entries behind.
        """
        if self._due_index >= len(self._work.due):
            return 1
        entries = self._work.due[self._due_index].last_entry - self._expected
        left = 0
        if last is not None and last.batch_index() >= 0:
            left = batch_size_of(last.serialize()) - 1 - last.batch_index()
        return max(1, min(PORTION_MESSAGES_MAX, min(self._portion, entries) + left))

    def _take_run(self, ids: Sequence[MessageId]) -> bool:
        """Take messages all at once, if they follow each other between the last one and the border.

        False, and nothing is taken, if they must be looked at one by one: some are not in order,
        or entries between them are missing.
        """
        first, last = _key_of(ids[0]), _key_of(ids[-1])
        if not (self._taken < first and last < self._border and first[0] == self._border[0]):
            return False
        entries = [message_id.entry_id() for message_id in ids]
        every_entry = range(first[1], last[1] + 1)
        # One message of each entry is the common case, and needs no comparison of ids.
        if entries != list(every_entry) and (
            len(set(entries)) != len(every_entry)
            or not all(map(operator.lt, ids, islice(ids, 1, None)))
        ):
            return False
        self._note_hole(first[1])
        self._taken = last
        self._expected = last[1] + 1
        return True

    def _wanted(self, ids: Sequence[MessageId]) -> list[int]:
        """Take messages one by one; the places of those that belong to the range."""
        wanted: list[int] = []
        for index, message_id in enumerate(ids):
            if self._take(_key_of(message_id), message_id):
                wanted.append(index)
            if self._finished:
                break
        return wanted

    def _in_time(self, messages: Sequence[Message]) -> list[int]:
        """The places of those that were published within the times; notes how late any is."""
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

    def holes(self) -> list[Hole]:
        """The entries due that gave no message, in order. Call after :meth:`batches`."""
        while self._due_index < len(self._work.due):
            self._close_ledger()
        return self._holes

    def _rest(self) -> list[Hole]:
        """The entries due behind the last one that gave a message."""
        due = self._work.due[self._due_index :]
        firsts = [self._expected, *(part.first_entry for part in due[1:])]
        return [
            Hole(part.ledger_id, first, part.last_entry)
            for part, first in zip(due, firsts, strict=False)
            if first <= part.last_entry
        ]

    def _note_hole(self, before_entry: int) -> None:
        """Entries of the current ledger from the one expected on, up to this one, are silent."""
        part = self._work.due[self._due_index]
        last = min(before_entry - 1, part.last_entry)
        if self._expected <= last:
            self._holes.append(Hole(part.ledger_id, self._expected, last))

    def _close_ledger(self) -> None:
        """Go on to the next ledger that is due."""
        due = self._work.due
        self._note_hole(due[self._due_index].last_entry + 1)
        self._due_index += 1
        self._border = self._border_of(self._due_index)
        self._expected = due[self._due_index].first_entry if self._due_index < len(due) else 0

    def _border_of(self, due_index: int) -> OrderKey:
        """Before the last entry due of a ledger; behind all ledgers, before everything."""
        if due_index >= len(self._work.due):
            return (-1, -1, -1)
        part = self._work.due[due_index]
        return (part.ledger_id, part.last_entry, -1)

    def _take(self, key: OrderKey, message_id: MessageId) -> bool:
        """Whether a message belongs to the range and was not taken before.

        Notes entries left out, the arrival of a ledger's last entry, and the end of the range.
        """
        if key <= self._taken:
            return False
        if key > self._work.end.order_key:
            self._finished = True
            return False
        self._taken = key
        while self._due_index < len(self._work.due) and key[:2] > self._border[:2]:
            self._close_ledger()
        if self._due_index < len(self._work.due) and key[0] == self._border[0]:
            self._note_hole(key[1])
            self._expected = key[1] + 1
        if key[:2] == self._border[:2]:
            last_ledger = self._due_index + 1 == len(self._work.due)
            self._finished = last_ledger and _ends_entry(message_id, key, self._work.end.order_key)
        return True

    def _wait_on(self, last: MessageId | None) -> Message | None:
        """After a slice of silence: the next message, or None when none can come.

        ``last`` is what came before. Chunks up to the end are a message that is not complete yet,
        perhaps never: it belongs to a later range, and nobody waits for it here.

        Raises :class:`ReadTimeoutError` when ``pollTimeoutMs`` has passed in silence.
        """
        if last is None or _ends_entry(last, self._taken, self._work.end.order_key):
            rest = self._rest()
            if rest and self._are_chunks(rest):
                return None
        silent_s = (self._settings.poll_timeout_ms - self._slice_ms) / 1_000
        deadline = self._monotonic() + silent_s
        while self._may_follow():
            if self._monotonic() >= deadline:
                raise ReadTimeoutError(
                    f"{self._work.topic}: nothing arrived for {self._settings.poll_timeout_ms} ms "
                    f"(pollTimeoutMs), although messages up to {self._work.end} are due; "
                    f"read so far: {_show(self._taken)}"
                )
            try:
                return self._reader.read_next(self._slice_ms)
            except pulsar.Timeout:
                continue
        return None

    def _may_follow(self) -> bool:
        """Whether a message can still come; true while the broker cannot be asked."""
        try:
            return self._reader.has_message_available()
        except pulsar.PulsarException as error:
            log.info("%s: the broker does not answer (%s)", self._work.topic, error)
            return True


def read_range(
    work: ReadRange, settings: ReadSettings, schema: pa.Schema, stored: Stored
) -> Iterator[pa.RecordBatch]:
    """The task as a whole: open, read, close, and account for entries that gave no message.

    Chunked messages that begin before the range come last. ``stored`` is asked only if there are
    such entries. Raises :class:`DataLossError` if ``failOnDataLoss`` is set and some are gone.
    """

    def are_chunks(holes: Sequence[Hole]) -> bool:
        try:
            return all(
                isinstance(what, Chunk)
                for places in portions(places_of(holes))
                for what in stored.entries(work.topic, places).values()
            )
        except AdminError:  # the broker restarts, perhaps: then there is something to wait for
            return False

    rows = Rows(schema, work.topic, Keys(work.topic, partial(stored.key_kinds, work.topic)))
    holes = yield from _read_from(work.start, work, settings, rows, are_chunks)
    if holes:
        yield from _account_for(holes, work, settings, rows, stored)


def _account_for(
    holes: Sequence[Hole],
    work: ReadRange,
    settings: ReadSettings,
    rows: Rows,
    stored: Stored,
) -> Iterator[pa.RecordBatch]:
    """Messages that end in ``holes`` after all. What was planned and is not held is a loss."""
    ledgers = stored.ledgers(work.topic)
    held = {ledger.ledger_id for ledger in ledgers}
    gone = sorted({hole.ledger_id for hole in holes} - held)
    if gone:
        _report_trimmed(work, f"ledgers {gone}", settings)
    ask = partial(stored.entries, work.topic)
    kept: list[Hole] = []
    for hole in holes:
        if hole.ledger_id in held:
            rest = still_held(ask, hole)
            count = rest.first_entry - hole.first_entry
            if count:
                _report_trimmed(work, _counted(count, next(places_of([hole]))), settings)
            kept.append(rest)
    for places in portions(places_of(kept)):
        found = ask(places)
        for place in places:
            what = found[place]
            if isinstance(what, Chunk) and what.is_last:
                first = first_chunk(ask, ledgers, place, what)
                yield from _late_message(work, place, first, settings, rows)
        lost = [place for place in places if found[place] is Other.GONE]
        if lost:
            _report_trimmed(work, _counted(len(lost), lost[0]), settings)
        unreadable = [place for place in places if found[place] is Other.UNREADABLE]
        if unreadable:
            report_loss(
                f"{work.topic}: {len(unreadable)} entries gave no message, and the admin service "
                f"cannot show whether messages end in them, the first in {_text(unreadable[0])}",
                fail=settings.fail_on_data_loss,
            )


def _report_trimmed(work: ReadRange, what: str, settings: ReadSettings) -> None:
    report_loss(
        f"{work.topic}: {what} were trimmed before all of ({work.start}, {work.end}] was read",
        fail=settings.fail_on_data_loss,
    )


def _counted(count: int, first: Place) -> str:
    """Entries in words, in the plural: ``first`` and others behind it."""
    return f"{count} entries, the first {_text(first)},"


def _read_from(
    start: Position,
    work: ReadRange,
    settings: ReadSettings,
    rows: Rows,
    are_chunks: Callable[[Sequence[Hole]], bool],
) -> Generator[pa.RecordBatch, None, list[Hole]]:
    """The messages of ``work`` by a reader that begins behind ``start``; returns the holes."""
    reader = open_reader(work, settings, start)
    try:
        reading = RangeReader(without_wrapper(reader), work, settings, are_chunks=are_chunks)
        yield from reading.batches(rows)
    finally:
        _close(reader, work.topic)
    return reading.holes()


def _close(reader: Reader, topic: str) -> None:
    """Close a reader. A broker that does not answer to that takes nothing from what was read."""
    try:
        reader.close()
    except pulsar.PulsarException as error:
        log.info("%s: the reader was not closed properly (%s)", topic, error)


def _late_message(
    work: ReadRange, last: Place, first: Place | None, settings: ReadSettings, rows: Rows
) -> Iterator[pa.RecordBatch]:
    """The message whose chunks are the entries from ``first`` to ``last``, by its own reader."""
    end = work.end._replace(ledger_id=last[0], entry_id=last[1], batch_index=WHOLE_ENTRY)
    mean_bytes = max(part.entry_bytes_mean for part in work.due)
    alone = ReadRange(work.topic, end.before(), end, (Due(*last, last[1], mean_bytes),))
    if first is not None:
        start = end._replace(ledger_id=first[0], entry_id=first[1]).before()
        if not (yield from _read_from(start, alone, settings, rows, lambda _: False)):
            return
    report_loss(
        f"{work.topic}: the message that ends in {_text(last)} cannot be read: not all of its "
        f"chunks are held, or {ENTRIES_BETWEEN_MAX:,} other entries lie between two of them",
        fail=settings.fail_on_data_loss,
    )


def _text(place: Place) -> str:
    return f"{place[0]}:{place[1]}"


def report_loss(sentence: str, *, fail: bool) -> None:
    """Raise :class:`DataLossError`, or log a warning and go on, as ``failOnDataLoss`` says."""
    if fail:
        raise DataLossError(f"{sentence}. Set failOnDataLoss=false to go on without them")
    log.warning("%s; going on, because failOnDataLoss is false", sentence)


def _ends_entry(message_id: MessageId, key: OrderKey, end: OrderKey) -> bool:
    """Whether this message is the last that the range wants of its entry."""
    if key == end or message_id.batch_index() < 0:
        return True
    return message_id.batch_index() + 1 == batch_size_of(message_id.serialize())


def _key_of(message_id: MessageId) -> OrderKey:
    return (message_id.ledger_id(), message_id.entry_id(), message_id.batch_index())


def _picked(
    places: Sequence[int], messages: Sequence[Message], ids: Sequence[MessageId]
) -> tuple[list[Message], list[MessageId]]:
    return [messages[place] for place in places], [ids[place] for place in places]


def _show(key: OrderKey) -> str:
    """A place in words for an error message."""
    return str(Position(key[0], key[1])) if key[0] >= 0 else "nothing"
