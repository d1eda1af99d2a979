"""Reads a range although the client's process may end.

``pulsar-client`` trusts what producers send: some entries that no correct producer sends end its
process. So it reads in a process of its own, and this module makes the next attempt.

The first attempt after an ending is stepwise: the client then has no entry that follows the last
one handed on but the next. If its process ends twice without another message, the next due entry is
malformed. The task reports it as a loss, and goes on behind it.

Pure: an argument makes the attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from pyspark_pulsar.attempts import Attempt, AttemptEnd
from pyspark_pulsar.chunks import EntryId, MissingRange
from pyspark_pulsar.errors import (
    MalformedEntryError,
    PulsarSourceError,
    ReaderProcessError,
    StalledReaderError,
)
from pyspark_pulsar.losses import entry_text, report_loss
from pyspark_pulsar.offsets import WHOLE_ENTRY
from pyspark_pulsar.range_reader import Step

ENDINGS_MAX = 2
"""How often the process may end at one place before the next entry is malformed."""

ENDINGS_FROM_OUTSIDE_MAX = 3
"""How often something else may end the process, such as a lack of memory."""

MALFORMED_ENTRIES_MAX = 64
"""Most malformed entries of a task that are left out. Each takes a second or two."""

ReadAttempt = Callable[[Attempt], Iterator[Step | AttemptEnd]]
"""Makes an attempt. Raises what :func:`pyspark_pulsar.attempts.read` raises, and
:class:`ReaderProcessError` if its process ends."""


class RecoveringReader:
    """Reads one range, with as many attempts as it takes."""

    def __init__(self, attempt: Attempt, read: ReadAttempt) -> None:
        """``attempt`` is the first one."""
        self._attempt = attempt
        self._read = read
        self._missing: list[MissingRange] = []
        self._endings = self._endings_from_outside = self._malformed_entries = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The messages of the range as record batches, none of them empty.

        Raises:
            DataLossError: an entry is malformed, and ``failOnDataLoss`` is set.
            PulsarSourceError: more than :data:`MALFORMED_ENTRIES_MAX` are, or an attempt's error.
            ReaderProcessError: the process ended too often for another reason.
        """
        is_complete = False
        while not is_complete:
            try:
                for part in self._read(self._attempt):
                    if isinstance(part, AttemptEnd):
                        self._missing += part.missing
                        is_complete = part.is_complete
                    else:
                        self._go_on_behind(part)
                        if part.batch is not None:
                            yield part.batch
                self._attempt = replace(self._attempt, is_stepwise=False)
            except MalformedEntryError as error:
                place = (error.ledger_id, error.entry_id)
                self._leave_out(place, "and keeps others from arriving, or has wrong sizes")
            except StalledReaderError as stalled:
                self._pass((stalled.ledger_id, stalled.entry_id), stalled.entry_id)
            except ReaderProcessError as error:
                self._note_ending(error)
            is_complete |= not self._attempt.work.due

    def missing_ranges(self) -> list[MissingRange]:
        """The due entries that gave no message, in order, without the malformed ones. Call this
        after :meth:`batches`."""
        return self._missing

    def _go_on_behind(self, step: Step) -> None:
        """What the next attempt has to read, if there is one."""
        self._missing += step.missing
        work = self._attempt.work
        if step.reached.order_key > work.start.order_key:
            self._endings = self._endings_from_outside = 0
            self._attempt = replace(
                self._attempt, work=work.after(step.reached), begin=step.reached
            )

    def _note_ending(self, error: ReaderProcessError) -> None:
        if not error.is_by_client:
            self._endings_from_outside += 1
            if self._endings_from_outside > ENDINGS_FROM_OUTSIDE_MAX:
                raise error
        elif not self._attempt.is_stepwise:
            self._attempt = replace(self._attempt, is_stepwise=True)
        elif self._attempt.work.due:
            self._endings += 1
            if self._endings == ENDINGS_MAX:
                part = self._attempt.work.due[0]
                self._leave_out(
                    (part.ledger_id, part.first_entry),
                    f"or needs more memory than readerMemoryMb: {error}",
                )

    def _leave_out(self, place: EntryId, effect: str) -> None:
        """Report an entry as malformed, and go on behind it. Due entries before it are missing."""
        work, settings = self._attempt.work, self._attempt.settings
        sentence = f"{work.topic}: entry {entry_text(place)} is malformed {effect}"
        self._malformed_entries += 1
        if self._malformed_entries > MALFORMED_ENTRIES_MAX:
            raise PulsarSourceError(f"{sentence}. So are {MALFORMED_ENTRIES_MAX} before it")
        report_loss(sentence, fail=settings.fail_on_data_loss)
        self._pass(place, place[1] - 1)

    def _pass(self, place: EntryId, last_missing: int) -> None:
        """Go on behind ``place``. Due entries up to ``last_missing`` of its ledger are missing."""
        work = self._attempt.work
        behind = work.start._replace(ledger_id=place[0], entry_id=place[1], batch_index=WHOLE_ENTRY)
        self._missing += [
            MissingRange(part.ledger_id, part.first_entry, min(part.last_entry, last))
            for part in work.due
            for last in [last_missing if part.ledger_id == place[0] else part.last_entry]
            if (part.ledger_id, part.first_entry) <= (place[0], last_missing)
        ]
        self._endings = 0
        self._attempt = replace(self._attempt, work=work.after(behind), begin=behind)
