"""Holds the files of a running broker while a backup reads them.

    DIR/backup-source/files.json        the segments of each log, and where it ends
    DIR/backup-source/metadata.sqlite3  a copy
    DIR/backup-source/LOG~NAME          the file LOG/NAME of the backup: checkpoint, identity, ...

The state is the same moment in all of them: the metadata is copied on its own lane, which
changes nothing meanwhile, and the end of each log is read in the turn in which that copy has ended.
By then every record in the log is about what this metadata knows.

The tool that copies is another process. It renews its lease; one that was killed does not, and the
hold ends. A hold that was lost is answered with the reason, and the tool makes no generation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from headgate.app.backup.manifest import LogEnd
from headgate.app.backup.sources import FILES_NAME, LogList, SourceList
from headgate.app.data_directory import METADATA_NAME
from headgate.base.errors import HeadgateError
from headgate.facade.protocol import BackupHold
from headgate.fs import Fs
from headgate.ledger import CommitLog, Identity
from headgate.ledger.backup_view import BackupView
from headgate.ledger.format.directory import write_file
from headgate.metadata.errors import conflict, not_found
from headgate.storage.lanes import Lane, run_on

logger = logging.getLogger("headgate.backup")

LEASE_S: Final = 30.0
"""How long a backup may be silent."""
SOURCE_NAME: Final = "backup-source"
_ID_BYTES: Final = 8
_STILL_S: Final = 0.05
_STILL_TRIES: Final = 400
"""Twenty seconds. A rewriting takes a few, unless its rate is set to nearly nothing."""


class FileHolding:
    """The holds of backups on one data directory, one at a time. All methods but :meth:`clear` are
    for the event loop."""

    def __init__(
        self,
        fs: Fs,
        path: str,
        logs: Mapping[str, CommitLog],
        copy_metadata: Callable[[str], None],
        identities: Callable[[], list[tuple[CommitLog, Identity]]],
        *,
        upkeep: Lane,
        metadata: Lane,
        entropy: Callable[[int], bytes],
    ) -> None:
        """``logs`` are keyed by their folders' names. ``copy_metadata`` writes the metadata into a
        new file, on the lane ``metadata``; ``identities`` are those of the logs now. ``upkeep`` is
        the lane that writes checkpoints."""
        self._fs = fs
        self._path = path
        self._source_path = f"{path}/{SOURCE_NAME}"
        self._logs = logs
        self._copy_metadata = copy_metadata
        self._identities = identities
        self._upkeep = upkeep
        self._metadata = metadata
        self._entropy = entropy
        self._id = ""
        """The present backup; empty without one."""
        self._ended: dict[str, str] = {}
        """Why the last backup ended, by its id, if it did so before its tool."""
        self._lease: asyncio.TimerHandle | None = None

    def clear(self) -> None:
        """Remove what an earlier backup left. Blocks. Raises :class:`OSError`.

        In a data directory from elsewhere the folder may be a link: then the link alone goes, and
        no file that it leads to.
        """
        if self._fs.is_link(self._source_path):
            self._fs.remove(self._source_path)
            return
        try:
            names = self._fs.list_directory(self._source_path)
        except FileNotFoundError:
            return
        except NotADirectoryError:  # in a data directory from elsewhere
            self._fs.remove(self._source_path)
            return
        for name in names:
            self._fs.remove(f"{self._source_path}/{name}")

    async def begin(self) -> BackupHold:
        """Hold the present state until :meth:`end`.

        Raises:
            RefusalError: 409: a backup is under way, or the disk is full.
            StorageError: the disk refused.
        """
        if self._id:
            raise conflict(self._why_not_two())
        self._id = self._entropy(_ID_BYTES).hex()
        for log in self._logs.values():
            log.files_hold.begin()
        try:
            await self._when_still()
            await self._describe()
            lost = self._lost()
            if lost:
                raise conflict(lost)
        except BaseException as error:
            await self._release(f"it could not begin: {error}")
            raise
        self._renew_lease()
        logger.info("a backup begins: no segment is deleted or punched until it ends")
        return BackupHold(self._id, self._path, self._source_path, LEASE_S)

    async def renew(self, backup_id: str) -> None:
        """Extend the lease of a backup by :data:`LEASE_S`.

        Raises:
            RefusalError: 404 if it is unknown, 409 with the reason if its hold was lost.
        """
        self._check(backup_id)
        lost = self._lost()
        if lost:
            await self._release(lost)
            raise conflict(lost)
        self._renew_lease()

    async def end(self, backup_id: str) -> None:
        """End a backup. Returns if its files were held until now. Raises as :meth:`renew`."""
        self._check(backup_id)
        lost = self._lost()
        await self._release(lost)
        if lost:
            raise conflict(lost)

    def _why_not_two(self) -> str:
        if self._lease is None:
            return "another backup is just beginning or ending"
        left_s = max(0.0, self._lease.when() - asyncio.get_running_loop().time())
        return (
            f"another backup is under way. Its command renewed it {LEASE_S - left_s:.0f} s ago. If "
            f"that command was killed, the broker ends the backup in {left_s:.0f} s"
        )

    async def _when_still(self) -> None:
        """Return when no rewriting is under way; none begins while the files are held."""
        for _ in range(_STILL_TRIES):
            if not any(log.is_rewriting for log in self._logs.values()):
                return
            await asyncio.sleep(_STILL_S)
        raise conflict("segments are being rewritten: try again")

    async def _describe(self) -> None:
        """Copy what changes, and note what of all other files belongs to the state."""
        checkpoints = await run_on(self._upkeep, self._copy_checkpoints)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        views: dict[str, BackupView] = {}
        identities: dict[CommitLog, Identity] = {}

        def copied(_: object, error: BaseException | None) -> None:
            # In this turn the loop knows exactly the metadata that were copied.
            if error is None:
                for name, log in self._logs.items():
                    views[name] = log.backup_view(checkpoints[name])
                identities.update(self._identities())
            if future.cancelled():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        target = f"{self._source_path}/{METADATA_NAME}"
        self._metadata.submit(partial(self._copy_metadata, target), copied)
        await future
        await run_on(self._upkeep, partial(self._write, views, identities))

    def _copy_checkpoints(self) -> dict[str, int]:
        """Runs on the upkeep lane, so no checkpoint is written meanwhile."""
        self._fs.make_directory(self._source_path)
        self.clear()
        return {
            name: log.copy_checkpoint(self._source_path, f"{name}~")
            for name, log in self._logs.items()
        }

    def _write(
        self, views: Mapping[str, BackupView], identities: Mapping[CommitLog, Identity]
    ) -> None:
        logs, data_id = {}, ""
        for name, view in views.items():
            log = self._logs[name]
            identity = identities.get(log)
            data_id = data_id or ("" if identity is None else identity.data_id)
            log.describe(self._source_path, f"{name}~", view, identity)
            end = LogEnd(view.end.batch, view.end.segment, view.end.offset)
            logs[name] = LogList(view.segments, end)
        content = msgspec.json.encode(SourceList(data_id, logs))
        write_file(self._fs, self._source_path, FILES_NAME, [content])

    def _check(self, backup_id: str) -> None:
        if not self._id or backup_id != self._id:
            why = self._ended.get(backup_id)
            raise not_found("no such backup") if why is None else conflict(why)

    def _lost(self) -> str:
        """Why the hold was lost; empty while it holds."""
        return next((log.files_hold.lost for log in self._logs.values() if log.files_hold.lost), "")

    def _renew_lease(self) -> None:
        if self._lease is not None:
            self._lease.cancel()
        loop = asyncio.get_running_loop()
        self._lease = loop.call_later(LEASE_S, self._expire)

    def _expire(self) -> None:
        """The tool of the backup is silent."""
        why = f"it was not renewed for {LEASE_S:g} s"
        self._let_go(why)
        self._upkeep.submit(self.clear, _log_error)

    async def _release(self, why: str) -> None:
        self._let_go(why)
        try:
            await run_on(self._upkeep, self.clear)
        except (OSError, HeadgateError) as error:
            _log_error(None, error)

    def _let_go(self, why: str) -> None:
        if self._lease is not None:
            self._lease.cancel()
            self._lease = None
        for log in self._logs.values():
            log.files_hold.end()
        if why:
            logger.warning("the backup is given up: %s", why)
        else:
            logger.info("the backup has ended: segments are deleted and punched again")
        self._ended = {self._id: f"the backup ended early: {why}"} if why else {}
        self._id = ""


def _log_error(_: object, error: BaseException | None) -> None:
    if error is not None:
        logger.warning("%s could not be cleared: %s", SOURCE_NAME, error)
