"""What changed in a table since a version, from the versions of its log alone.

Derived tables compute again what follows from a change. A process keeps the logs that it has read,
and reads only the versions that were added.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from deltalake.exceptions import TableNotFoundError

from headgate.pipeline.store.delta_log import (
    TOUCHED_KEY,
    TableFile,
    ensure_table,
    file_of_action,
    table_files,
)
from headgate.pipeline.store.followed_log import FollowedLog
from headgate.pipeline.store.table_store import LOG, store_of
from headgate.pipeline.tables.columns import Table
from headgate.pipeline.tables.touched_minutes import TouchedMinutes

FOLLOWED_MAX: Final = 64
"""Most tables whose log a process keeps in memory; about 0.5 KB for each of a table's files."""


@dataclass(frozen=True, slots=True)
class SourceChange:
    """What changed in a table since a version."""

    files: list[TableFile]
    """The files with new rows."""
    minutes: TouchedMinutes
    """The minutes whose rows were added, replaced or removed."""


def change_since(
    root: str,
    name: str,
    after_version: int | None,
    version: int,
    live: Callable[[], list[TableFile]],
) -> SourceChange:
    """What changed in a table after one version, up to another.

    If ``after_version`` is None, or the log since then is incomplete, that is all ``live`` files.
    This is safe: derived tables are pure functions, so computing more of them changes nothing.
    A commit that replaced minutes tells which. Of other commits it is the hours of the files that
    they added, as far as these do not tell their minutes.
    """
    if after_version is None:
        return _all_changed(live())
    store = store_of(root)
    files: list[TableFile] = []
    minutes = TouchedMinutes()
    try:
        for number in range(after_version + 1, version + 1):
            added, touched = _changed_in(store.text(name, LOG, f"{number:020d}.json"))
            files += added
            minutes |= touched
    except FileNotFoundError:
        return _all_changed(live())
    return SourceChange(files, minutes)


def _all_changed(files: list[TableFile]) -> SourceChange:
    return SourceChange(files, _minutes_of(files))


def _minutes_of(files: Iterable[TableFile]) -> TouchedMinutes:
    found = TouchedMinutes()
    for file in files:
        found |= TouchedMinutes.between(*file.span_ns)
    return found


def _changed_in(log: str) -> tuple[list[TableFile], TouchedMinutes]:
    """The files that a version added as new data, and the minutes that it changed."""
    actions = [json.loads(line) for line in log.splitlines()]
    added = [a["add"] for a in actions if "add" in a and a["add"].get("dataChange", True)]
    files = [file_of_action(action) for action in added]
    told = [(a.get("commitInfo") or {}).get(TOUCHED_KEY) for a in actions]
    for text in told:
        if text is not None:
            return files, TouchedMinutes.from_json(text)
    return files, _minutes_of(files)


_followed: OrderedDict[tuple[str, str], FollowedLog[TableFile]] = OrderedDict()
_followed_lock = threading.Lock()


def followed(root: str, name: str) -> FollowedLog[TableFile]:
    """The log of an existing table, brought up to date with its newest version; only to be read.

    Raises:
        TableNotFoundError: there is no such table.
    """
    store = store_of(root)
    key = (store.folder, name)
    with _followed_lock:
        log = _followed.pop(key, None) or FollowedLog(store, name, file_of_action, table_files)
        _followed[key] = log
        while len(_followed) > FOLLOWED_MAX:
            _followed.popitem(last=False)
    log.advance()
    return log


def followed_or_new(root: str, table: Table) -> FollowedLog[TableFile]:
    """As :func:`followed`, for a table that this job fills: it is created if it is absent."""
    try:
        return followed(root, table.name)
    except TableNotFoundError:
        ensure_table(root, table)
        return followed(root, table.name)
