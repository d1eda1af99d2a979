"""A table's log that a process follows: it reads what changed since the version it saw last.

Opening a table replays its whole log, and listing its files makes an object of each: for 50,000
files two seconds of CPU. A stream, and each part of one run, does both many times. So a process
opens a table once and then reads the versions that were added. It reads everything again if the log
is not the one it knows: the table was deleted and made again, or the versions since are gone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.pipeline.store.table_store import LOG, TableStore

_HOUR_COLUMNS: Final = frozenset({"date", "hour"})


class LiveFile(Protocol):
    """What the log must tell of a file."""

    @property
    def path(self) -> str:
        """Relative to the table's folder."""

    @property
    def hour(self) -> int:
        """Hours since the epoch of its partition; asked only of tables that have hours."""


File = TypeVar("File", bound=LiveFile)


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """A file that a version replaced."""

    path: str
    version: int
    removed_ms: int


class FollowedLog(Generic[File]):
    """The newest version of one table, as this process has read it.

    Hold :attr:`lock` while you use :attr:`delta`: another thread may move it to a newer version.
    """

    def __init__(
        self,
        store: TableStore,
        name: str,
        file_of: Callable[[Mapping[str, Any]], File],
        files_of: Callable[[DeltaTable], Iterable[File]],
    ) -> None:
        """``file_of`` reads an ``add`` action of the log, ``files_of`` lists a loaded table."""
        self._store, self._name = store, name
        self._file_of, self._files_of = file_of, files_of
        self.lock = threading.RLock()
        self._delta: DeltaTable | None = None
        self._files: dict[str, File] = {}
        self._by_hour: dict[int, dict[str, File]] = {}
        self._has_hours = False
        self._mark: object = None
        self._removed: list[RemovedFile] = []
        self.loads = 0
        """How often the whole log was read."""

    @property
    def delta(self) -> DeltaTable:
        """The table at the version that :meth:`advance` found."""
        if self._delta is None:
            raise RuntimeError(f"table {self._name} was not opened yet")
        return self._delta

    @property
    def version(self) -> int:
        """The number of that version."""
        return int(self.delta.version())

    def advance(self) -> None:
        """Read the versions that were added; at first, and if the log is another one, all of it.

        Raises:
            TableNotFoundError: there is no such table.
        """
        with self.lock:
            if not self._advanced():
                self._load()
            self._mark = self._mark_of(self.delta.version())

    def files(self) -> list[File]:
        """All live files."""
        with self.lock:
            return list(self._files.values())

    def files_of_hours(self, hours: Iterable[int]) -> list[File]:
        """The live files of some hours since the epoch."""
        with self.lock:
            return [file for hour in hours for file in self._by_hour.get(hour, {}).values()]

    def hours(self) -> list[int]:
        """The hours that have files, in order."""
        with self.lock:
            return sorted(self._by_hour)

    def removed_files(self) -> list[RemovedFile]:
        """The files that versions removed while this process followed the log, in order."""
        with self.lock:
            return list(self._removed)

    def forget_removed(self, until_version: int) -> None:
        """Forget the removed files of versions up to this one."""
        with self.lock:
            self._removed = [file for file in self._removed if file.version > until_version]

    def _load(self) -> None:
        self._delta = self._store.delta(self._name)
        columns = self._delta.metadata().partition_columns
        self._has_hours = _HOUR_COLUMNS.issubset(columns)
        self._files, self._by_hour, self._removed = {}, {}, []
        for file in self._files_of(self._delta):
            self._add(file)
        self.loads += 1

    def _advanced(self) -> bool:
        """Read the added versions; False if the whole log must be read."""
        if self._delta is None:
            return False
        version = self._delta.version()
        if self._mark is None or self._mark_of(version) != self._mark:
            return False
        try:
            self._delta.update_incremental()
            logs = [self._text(new) for new in range(version + 1, self._delta.version() + 1)]
        except (DeltaError, FileNotFoundError):
            return False
        for number, log in enumerate(logs, version + 1):
            self._apply(number, log)
        return True

    def _text(self, version: int) -> str:
        return self._store.text(self._name, LOG, f"{version:020d}.json")

    def _mark_of(self, version: int) -> object:
        """What tells a version of this log from the same version of another one."""
        return self._store.version_mark(self._name, version)

    def _apply(self, version: int, log: str) -> None:
        for action in _actions(log):
            if (removed := action.get("remove")) is not None:
                self._remove(removed["path"])
                self._removed.append(
                    RemovedFile(removed["path"], version, removed.get("deletionTimestamp") or 0)
                )
            elif (added := action.get("add")) is not None:
                self._add(self._file_of(added))

    def _add(self, file: File) -> None:
        self._files[file.path] = file
        if self._has_hours:
            self._by_hour.setdefault(file.hour, {})[file.path] = file

    def _remove(self, path: str) -> None:
        file = self._files.pop(path, None)
        if file is not None and self._has_hours:
            of_hour = self._by_hour[file.hour]
            of_hour.pop(path, None)
            if not of_hour:
                del self._by_hour[file.hour]


def _actions(log: str) -> Iterator[dict[str, Any]]:
    """The actions of a version; what it removes comes first, so that a file may come back."""
    actions = [json.loads(line) for line in log.splitlines()]
    yield from (action for action in actions if "remove" in action)
    yield from (action for action in actions if "remove" not in action)
