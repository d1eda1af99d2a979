"""One attempt to read a range with the client, in this process.

:mod:`pyspark_pulsar.reader_process` makes it in a process of its own, and
:mod:`pyspark_pulsar.recovery` makes the next one if that process ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Protocol

import pulsar
import pyarrow as pa

from pyspark_pulsar.chunks import (
    Chunk,
    EntryId,
    MissingRange,
    NoChunk,
    entry_ids,
    portions,
    without_trimmed,
)
from pyspark_pulsar.client import ReadSettings, native_reader, open_reader
from pyspark_pulsar.columns import Rows
from pyspark_pulsar.errors import AdminError, MalformedEntryError, StalledReaderError
from pyspark_pulsar.keys import KeyDecoder, KeyKind, MessageRef
from pyspark_pulsar.losses import refuse_encrypted
from pyspark_pulsar.offsets import Position
from pyspark_pulsar.range_reader import RangeReader, Reader, Step
from pyspark_pulsar.ranges import ReadRange
from pyspark_pulsar.stepwise import StepwiseReader

STEPWISE_MESSAGES_MAX = 32_768
"""How many messages an attempt reads one by one. A client whose process ends is ahead of the last
step by less: by one step, one batch of rows and the messages that it prefetched."""

log = logging.getLogger("pyspark_pulsar")


class EntryQueries(Protocol):
    """What an attempt uses of the admin API."""

    def entries(self, topic: str, places: Iterable[EntryId]) -> dict[EntryId, Chunk | NoChunk]:
        """The kind of each of these entries."""

    def key_kinds(
        self, topic: str, places: Iterable[MessageRef]
    ) -> dict[MessageRef, KeyKind | None]:
        """The kind of each message's key; None if it is unknown."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What to read, and how."""

    work: ReadRange
    settings: ReadSettings
    schema: pa.Schema
    begin: Position
    """Where the client begins: just after this position. It may be before the range."""
    is_stepwise: bool = False
    """Whether the client gets an entry only after the one before it was handed on."""
    awaits_chunks: bool = False
    """Whether entries that are chunks give a message, because the client began before them."""


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """The end of an attempt."""

    missing: tuple[MissingRange, ...]
    """The due entries that gave no message, without those that the steps have."""
    is_complete: bool
    """False if it stopped before the end of the range."""


def read(attempt: Attempt, stored: EntryQueries) -> Iterator[Step | AttemptEnd]:
    """The steps of an attempt, and its end.

    Raises:
        MalformedEntryError: an entry keeps others from arriving.
        StalledReaderError: the same, or a message may have been dropped.
        MemoryError: a message of a batch was dropped.
        EncryptedError: entries are encrypted, and ``failOnDataLoss`` is set.
        ReadTimeoutError, AccessError: see :mod:`pyspark_pulsar.client`.
    """
    work, settings = attempt.work, attempt.settings
    rows = Rows(
        attempt.schema, work.topic, KeyDecoder(work.topic, partial(stored.key_kinds, work.topic))
    )
    reader = _open(attempt)
    try:
        reading = RangeReader(
            reader,
            work,
            settings,
            will_not_come=partial(_will_not_come, attempt, stored),
            messages_max=STEPWISE_MESSAGES_MAX if attempt.is_stepwise else None,
            malformed_of=partial(_first_malformed, attempt, stored)
            if settings.verify_batches
            else None,
        )
        check = _DroppedMessages(partial(stored.entries, work.topic)).check
        for step in reading.steps(rows):
            if attempt.is_stepwise:
                check(step.missing)
            yield step
        missing = tuple(reading.missing_ranges())
        if attempt.is_stepwise:
            check(missing)
    finally:
        _close(reader, work.topic)
    yield AttemptEnd(missing, not reading.is_stopped)


class _DroppedMessages:
    """Looks for messages of a stepwise attempt that the client received and dropped.

    It drops a message whose listener has no memory. Chunks before it have taken that, which a later
    one may give back. So a missing entry behind a chunk may be such a message. Another reader that
    begins with it has no chunks.
    """

    def __init__(self, ask: Callable[[list[EntryId]], dict[EntryId, Chunk | NoChunk]]) -> None:
        self._ask = ask
        self._is_behind_chunk = False

    def check(self, missing: Sequence[MissingRange]) -> None:
        """Raise :class:`StalledReaderError` if one of these may have been dropped."""
        for part in missing:
            for places in portions(entry_ids(without_trimmed(self._ask, [part]))):
                kinds = self._ask(places)
                for place in places:
                    if isinstance(kinds[place], Chunk):
                        self._is_behind_chunk = True
                    elif self._is_behind_chunk and kinds[place] is not NoChunk.ENCRYPTED:
                        raise StalledReaderError(place[0], place[1] - 1)


def _open(attempt: Attempt) -> Reader:
    def opened(listener: Any = None) -> Any:
        return open_reader(attempt.work, attempt.settings, attempt.begin, listener=listener)

    return StepwiseReader(opened) if attempt.is_stepwise else native_reader(opened())


def _will_not_come(attempt: Attempt, stored: EntryQueries, missing: Sequence[MissingRange]) -> bool:
    """Whether these entries give no message: all are encrypted, or chunks of a message that began
    before or ends behind them.

    Raises :class:`MalformedEntryError` at one that keeps those behind it from arriving, and
    :class:`StalledReaderError` if encrypted ones may do so.
    """
    topic = attempt.work.topic
    ids = entry_ids(missing)
    encrypted: EntryId | None = None
    try:
        for places in chain([[next(ids)]], portions(ids)):
            kinds = stored.entries(topic, places)
            for place in places:
                kind = kinds[place]
                if kind is NoChunk.MALFORMED:
                    raise MalformedEntryError(*place)
                if kind is NoChunk.ENCRYPTED:
                    refuse_encrypted(topic, [place], fail=attempt.settings.fail_on_data_loss)
                    encrypted = place
                elif attempt.awaits_chunks or not isinstance(kind, Chunk):
                    if encrypted is not None:
                        raise StalledReaderError(*encrypted)
                    return False
    except AdminError:  # the broker may be restarting: then messages may follow
        return False
    return True


def _first_malformed(
    attempt: Attempt, stored: EntryQueries, batches: list[EntryId]
) -> EntryId | None:
    """The first of these batches that the admin API does not show as whole."""
    for places in portions(batches):
        kinds = stored.entries(attempt.work.topic, places)
        for place in places:
            if kinds[place] is not NoChunk.WHOLE:
                return place
    return None


def _close(reader: Reader, topic: str) -> None:
    """Close a reader. A failure to close does not affect the messages that were read."""
    try:
        reader.close()
    except pulsar.PulsarException as error:
        log.info("%s: the reader was not closed (%s)", topic, error)
