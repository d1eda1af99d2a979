"""Writes the identity of the metadata into each log's directory.

At the next start :mod:`headgate.storage.store_binding` compares it with the metadata. So it detects
metadata that is older than the log or whose last changes are damaged. The broker writes the
identity soon after each change, after each checkpoint of a log, and when it closes. After a crash
only the metadata has the changes of the last second.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from headgate.base.errors import InvariantError, StorageError
from headgate.ledger import CommitLog, Identity
from headgate.metadata.catalog import Catalog
from headgate.storage.lanes import Lane, run_on
from headgate.storage.metadata_copier import MetadataCopier
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.broker")


class IdentityWriter:
    """Writes the metadata's revision and highest topic number beside each log."""

    def __init__(self, catalog: Catalog, logs: Mapping[str, CommitLog], lane: Lane) -> None:
        """``logs`` are keyed by their names in the metadata; ``lane`` is the metadata lane."""
        self._catalog = catalog
        self._logs = logs
        self._lane = lane
        self.copier: MetadataCopier | None = None
        """Saves a copy of the metadata before each identity: the copy then has all changes that the
        identity knows of."""
        self._written: tuple[int, ...] = ()
        """The revision, and the batches of the checkpoints, when the identity was written last."""
        self._is_busy = False
        self._failures = RepeatedFailureLogger(logger, "writing the metadata's identity")

    def write_if_changed(self, now_ns: int) -> None:
        """Write the identity if the metadata changed, or a log has a new checkpoint. The next call
        repeats a failed write."""
        if self.copier is not None:
            self.copier.save_if_behind(now_ns)
        wanted = self._state()
        if self._is_busy or wanted == self._written:
            return
        identities = self._with_batches()

        def done(_: object, error: BaseException | None) -> None:
            self._is_busy = False
            if error is None:
                self._written = wanted
                self._failures.succeeded(now_ns)
            elif isinstance(error, InvariantError):
                raise error
            else:
                self._failures.failed(error, now_ns)

        self._is_busy = True
        self._lane.submit(lambda: _write(identities), done)

    def internal_errors(self) -> list[str]:
        """The internal errors with which writing and copying fail at present."""
        own = [self._failures.internal_error] if self._failures.internal_error else []
        return own if self.copier is None else [*own, *self.copier.internal_errors()]

    async def close(self) -> None:
        """Write the last state. Call it once every change is stored or abandoned."""
        if self.copier is not None:
            await self.copier.close()
        identities = self._with_batches()
        try:
            await run_on(self._lane, lambda: _write(identities))
        except StorageError as error:
            logger.error("closing: %s", error)

    def _state(self) -> tuple[int, ...]:
        batches = (log.checkpoint_batch for log in self._logs.values())
        return self._catalog.revision, *batches

    def _with_batches(self) -> list[tuple[CommitLog, Identity]]:
        return [(log, replace(i, batch=log.last_batch)) for log, i in self.identities()]

    def identities(self) -> list[tuple[CommitLog, Identity]]:
        """The identity of each log that was bound when it was opened, without its batches."""
        row, number = self._catalog.identity, self._catalog.topic_number_last
        return [
            (log, Identity(row.data_id, starts, number, self._catalog.revision))
            for name, log in self._logs.items()
            if (starts := row.starts_by_log.get(name)) is not None
        ]


def _write(identities: list[tuple[CommitLog, Identity]]) -> None:
    for log, identity in identities:
        log.identify(identity)
