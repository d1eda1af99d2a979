"""Reads the messages of one range as Arrow record batches.

Planned entries that gave no message are lost only if the topic no longer holds them. They may be
transaction markers or aborted messages, which no reader receives, or chunks of a message
(:mod:`pyspark_pulsar.chunks`). So a task asks the admin API before it reports a loss.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Protocol

import pyarrow as pa

from pyspark_pulsar.attempts import Attempt
from pyspark_pulsar.chunks import (
    ENTRIES_BETWEEN_MAX,
    Chunk,
    ChunkSearch,
    EntryId,
    EntryKinds,
    MissingRange,
    NoChunk,
    entry_ids,
    kinds_of_missing,
    without_trimmed,
)
from pyspark_pulsar.client import ReadSettings
from pyspark_pulsar.losses import entry_text, refuse_encrypted, report_loss
from pyspark_pulsar.offsets import WHOLE_ENTRY
from pyspark_pulsar.ranges import DueEntries, LedgerSpan, ReadRange
from pyspark_pulsar.reader_process import read_in_process
from pyspark_pulsar.recovery import ReadAttempt, RecoveringReader


class EntryQueries(Protocol):
    """What this module uses of the admin API."""

    def ledgers(self, topic: str) -> tuple[LedgerSpan, ...]: ...
    def entries(self, topic: str, places: Iterable[EntryId]) -> dict[EntryId, Chunk | NoChunk]: ...


def read_range(
    work: ReadRange,
    settings: ReadSettings,
    schema: pa.Schema,
    stored: EntryQueries,
    read: ReadAttempt = read_in_process,
) -> Iterator[pa.RecordBatch]:
    """The messages of one task, as record batches.

    Chunked messages that begin before the range come last. The task queries ``stored`` only for
    entries that gave no message. If ``failOnDataLoss`` is set, it raises :class:`DataLossError` if
    some are gone or malformed, and :class:`EncryptedError` if some are encrypted. ``read`` makes
    the attempts to read.
    """
    missing = yield from _read_all(Attempt(work, settings, schema, work.start), read)
    if missing:
        yield from _read_chunked(missing, work, settings, schema, stored, read)


def _read_chunked(
    missing: Sequence[MissingRange],
    work: ReadRange,
    settings: ReadSettings,
    schema: pa.Schema,
    stored: EntryQueries,
    read: ReadAttempt,
) -> Iterator[pa.RecordBatch]:
    """The chunked messages whose last chunk is in ``missing``; reports lost entries."""
    ledgers = stored.ledgers(work.topic)
    held = {ledger.ledger_id for ledger in ledgers}
    gone = sorted({part.ledger_id for part in missing} - held)
    if gone:
        _report_trimmed(work, f"ledgers {gone}", settings)
    ask = partial(stored.entries, work.topic)
    kept: list[MissingRange] = []
    for ledger_id, parts in groupby(missing, lambda part: part.ledger_id):
        if ledger_id in held:
            before = list(parts)
            rest = without_trimmed(ask, before)
            count = _entry_count(before) - _entry_count(rest)
            if count:
                _report_trimmed(work, _counted(count, next(entry_ids(before))), settings)
            kept += rest
    search = ChunkSearch(ask, ledgers)
    for found in kinds_of_missing(ask, work.due, kept):
        for entry_id, kind in found.kinds.items():
            if isinstance(kind, Chunk) and kind.is_last:
                first = search.first_chunk(entry_id, kind)
                yield from _read_chunked_message(work, entry_id, first, settings, schema, read)
        _report_kinds(work, found, settings)


def _entry_count(missing: Iterable[MissingRange]) -> int:
    return sum(part.entries for part in missing)


def _report_kinds(work: ReadRange, found: EntryKinds, settings: ReadSettings) -> None:
    """Report entries that are gone, encrypted, malformed or unreadable."""
    at_least = "at least " if found.is_sample else ""

    def of_kind(wanted: NoChunk) -> list[EntryId]:
        return [entry_id for entry_id, kind in found.kinds.items() if kind is wanted]

    if lost := of_kind(NoChunk.GONE):
        _report_trimmed(work, f"{at_least}{_counted(len(lost), lost[0])}", settings)
    if encrypted := of_kind(NoChunk.ENCRYPTED):
        refuse_encrypted(
            work.topic,
            encrypted,
            fail=settings.fail_on_data_loss,
            count_text=f"{at_least}{len(encrypted)}",
        )
    if malformed := of_kind(NoChunk.MALFORMED):
        report_loss(
            f"{work.topic}: {at_least}{_counted(len(malformed), malformed[0])} are malformed",
            fail=settings.fail_on_data_loss,
        )
    if unreadable := of_kind(NoChunk.UNREADABLE):
        report_loss(
            f"{work.topic}: {at_least}{len(unreadable)} entries gave no message, and the admin API "
            "cannot show whether messages end in them, the first in "
            f"{entry_text(unreadable[0])}",
            fail=settings.fail_on_data_loss,
        )


def _report_trimmed(work: ReadRange, what: str, settings: ReadSettings) -> None:
    report_loss(
        f"{work.topic}: {what} were trimmed before all of ({work.start}, {work.end}] was read",
        fail=settings.fail_on_data_loss,
    )


def _counted(count: int, first: EntryId) -> str:
    """Entries in words, in the plural, with the id of the first."""
    return f"{count} entries, the first {entry_text(first)},"


def _read_all(
    attempt: Attempt, read: ReadAttempt
) -> Generator[pa.RecordBatch, None, list[MissingRange]]:
    """The messages of a range; returns the missing entries."""
    reading = RecoveringReader(attempt, read)
    yield from reading.batches()
    return reading.missing_ranges()


def _read_chunked_message(
    work: ReadRange,
    last: EntryId,
    first: EntryId | None,
    settings: ReadSettings,
    schema: pa.Schema,
    read: ReadAttempt,
) -> Iterator[pa.RecordBatch]:
    """The message with the chunks ``first`` to ``last``; reports it if it is unreadable."""
    end = work.end._replace(ledger_id=last[0], entry_id=last[1], batch_index=WHOLE_ENTRY)
    mean_bytes = max(part.entry_bytes_mean for part in work.due)
    alone = ReadRange(work.topic, end.before(), end, (DueEntries(*last, last[1], mean_bytes),))
    if first is not None:
        begin = end._replace(ledger_id=first[0], entry_id=first[1]).before()
        attempt = Attempt(alone, settings, schema, begin, awaits_chunks=True)
        if not (yield from _read_all(attempt, read)):
            return
    report_loss(
        f"{work.topic}: the message that ends in {entry_text(last)} cannot be read: not all of "
        f"its chunks are stored, or {ENTRIES_BETWEEN_MAX:,} other entries are between two of them, "
        "or fewer, where the task has searched for very many",
        fail=settings.fail_on_data_loss,
    )
