"""Writes the identity of the metadata into each log's directory.

At the next start :mod:`headgate.storage.store_binding` compares it with the metadata, to recognise
metadata that are older than the log or whose last changes are damaged. The broker writes it soon
after each change and when it closes. After a crash only the metadata know of the last second's
changes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from headgate.base.errors import StorageError
from headgate.ledger import CommitLog, Identity
from headgate.metadata.catalog import Catalog
from headgate.storage.lanes import Lane, run_on
from headgate.storage.repeated_failures import RepeatedFailureLog

logger = logging.getLogger("headgate.broker")


class IdentityWriter:
    """Writes the metadata's revision and highest topic number beside each log."""

    def __init__(self, catalog: Catalog, logs: Mapping[str, CommitLog], lane: Lane) -> None:
        """``logs`` have their names in the metadata as keys; ``lane`` is the metadata's."""
        self._catalog = catalog
        self._logs = logs
        self._lane = lane
        self._written_revision = 0
        self._is_busy = False
        self._failures = RepeatedFailureLog(logger, "writing the metadata's identity")

    def look(self, now_ns: int) -> None:
        """Write the identity if the metadata changed. The next call repeats a failed write."""
        revision = self._catalog.revision
        if self._is_busy or revision == self._written_revision:
            return
        notes = self._notes()

        def done(_: object, error: BaseException | None) -> None:
            self._is_busy = False
            if error is None:
                self._written_revision = revision
                self._failures.succeeded(now_ns)
            elif isinstance(error, StorageError):
                self._failures.failed(error, now_ns)
            else:
                raise error

        self._is_busy = True
        self._lane.submit(lambda: _write(notes), done)

    async def close(self) -> None:
        """Write the last state. Every change must have been stored or abandoned before."""
        if self._catalog.revision == self._written_revision:
            return
        notes = self._notes()
        try:
            await run_on(self._lane, lambda: _write(notes))
        except StorageError as error:
            logger.error("closing: %s", error)

    def _notes(self) -> list[tuple[CommitLog, Identity]]:
        """What to write for each log that was bound when it was opened."""
        row, number = self._catalog.identity, self._catalog.topic_number_last
        return [
            (log, Identity(row.data_id, starts, number, self._catalog.revision))
            for name, log in self._logs.items()
            if (starts := row.starts_by_log.get(name)) is not None
        ]


def _write(notes: list[tuple[CommitLog, Identity]]) -> None:
    for log, identity in notes:
        log.identify(identity)
