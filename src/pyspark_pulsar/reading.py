"""Reads the messages of one range as Arrow record batches.

Due entries that did not arrive may be transaction markers or aborted messages, which no reader
receives. So a task asks the admin API before it reports a loss. They are lost if the topic no
longer holds them, or if another reader gets them: then the broker moved this one beyond them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby
from typing import Protocol

import pyarrow as pa

from pyspark_pulsar.chunk_search import ChunkSearch
from pyspark_pulsar.columns import Rows
from pyspark_pulsar.entries import EntryId
from pyspark_pulsar.entry_stream import EntryStream
from pyspark_pulsar.losses import entry_text, report_loss
from pyspark_pulsar.missing import Fate, MissingRange, entry_ids, fates_of, without_trimmed
from pyspark_pulsar.offsets import Position
from pyspark_pulsar.range_reader import RangeReader
from pyspark_pulsar.ranges import LedgerSpan, ReadRange
from pyspark_pulsar.read_settings import ReadSettings

UNSENT_ENTRIES_MAX = 1_024
"""If more entries than these remain, a task that gets none does not ask what they are: it takes a
request for each."""


class EntryQueries(Protocol):
    """What this module uses of the admin API."""

    def ledgers(self, topic: str) -> tuple[LedgerSpan, ...]: ...
    def fates(self, topic: str, entries: Iterable[EntryId]) -> Mapping[EntryId, Fate]: ...
    def is_unsent(self, topic: str, entry: EntryId) -> bool: ...


OpenStream = Callable[[str, Position, ReadSettings], EntryStream]
"""The entries of a topic behind a position."""


def read_range(
    work: ReadRange,
    settings: ReadSettings,
    schema: pa.Schema,
    stored: EntryQueries,
    open_stream: OpenStream = EntryStream,
) -> Iterator[pa.RecordBatch]:
    """The messages of one task, as record batches.

    The task queries ``stored`` only for entries that do not arrive, and for the begin of a message
    in chunks. If ``failOnDataLoss`` is set, it raises :class:`DataLossError` if some are gone or
    malformed, and :class:`EncryptedError` if some are encrypted.
    """

    def opened(begin: Position) -> EntryStream:
        return open_stream(work.topic, begin, settings)

    def are_unsent(rest: Sequence[MissingRange]) -> bool:
        return _entry_count(rest) <= UNSENT_ENTRIES_MAX and all(
            stored.is_unsent(work.topic, entry) for entry in entry_ids(rest)
        )

    search = ChunkSearch(
        opened,
        partial(stored.ledgers, work.topic),
        work.end.partition,
        settings.message_bytes_max,
        settings.poll_timeout_ms / 1_000,
    )
    with closing(opened(work.start)) as stream:
        rows = Rows(schema, work.topic)
        reading = RangeReader(stream, work, settings, rows, search, are_unsent=are_unsent)
        yield from reading.batches()
    if reading.missing:
        _report_missing(reading.missing, work, settings, stored, opened)


def _report_missing(
    missing: Sequence[MissingRange],
    work: ReadRange,
    settings: ReadSettings,
    stored: EntryQueries,
    opened: Callable[[Position], EntryStream],
) -> None:
    """Report those entries that the topic no longer holds, or that another reader gets."""
    held = {ledger.ledger_id for ledger in stored.ledgers(work.topic)}
    gone = sorted({part.ledger_id for part in missing} - held)
    if gone:
        _report_trimmed(work, f"ledgers {gone}", settings)
    ask = partial(stored.fates, work.topic)
    kept: list[MissingRange] = []
    for ledger_id, parts in groupby(missing, lambda part: part.ledger_id):
        if ledger_id in held:
            before = list(parts)
            rest = without_trimmed(ask, before)
            count = _entry_count(before) - _entry_count(rest)
            if count:
                _report_trimmed(work, _counted(count, next(entry_ids(before))), settings)
            kept += rest
    lost, passed, is_sample = fates_of(ask, kept)
    at_least = "at least " if is_sample else ""
    if lost:
        _report_trimmed(work, f"{at_least}{_counted(len(lost), lost[0])}", settings)
    if passed and any(_is_sent(each, work, settings, opened) for each in _some(passed)):
        report_loss(
            f"{work.topic}: {at_least}{_counted(len(passed), passed[0])} which the topic holds, "
            "did not come: they expired for this reader (a message TTL), or somebody moved its "
            "subscription. Another attempt may read them",
            fail=settings.fail_on_data_loss,
        )


def _some(passed: Sequence[EntryId]) -> set[EntryId]:
    """A few of them: each takes a connection, and none may be sent, as with a filter of entries."""
    return {passed[0], passed[len(passed) // 2], passed[-1]}


def _is_sent(
    entry: EntryId,
    work: ReadRange,
    settings: ReadSettings,
    opened: Callable[[Position], EntryStream],
) -> bool:
    """Whether another reader gets an entry."""
    before = Position(entry[0], entry[1] - 1, work.end.partition)
    with closing(opened(before)) as stream:
        found = stream.next_entry(settings.poll_timeout_ms / 1_000)
    return found is not None and found[:2] == entry


def _entry_count(missing: Iterable[MissingRange]) -> int:
    return sum(part.entries for part in missing)


def _report_trimmed(work: ReadRange, what: str, settings: ReadSettings) -> None:
    report_loss(
        f"{work.topic}: {what} were trimmed before all of ({work.start}, {work.end}] was read",
        fail=settings.fail_on_data_loss,
    )


def _counted(count: int, first: EntryId) -> str:
    """Entries in words, in the plural, with the id of the first."""
    return f"{count} entries, the first {entry_text(first)},"
