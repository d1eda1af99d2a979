"""Checks the metadata of a data directory that no broker has open, and its copy in the log."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.app.data_directory import METADATA_NAME
from headgate.app.metadata_copy import read_copy
from headgate.base.errors import CorruptionError, HeadgateError
from headgate.fs import OsFs
from headgate.ledger import Identity, LogFound, look_at_log
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import DamagedMetadataError
from headgate.metadata.file_check import file_problem
from headgate.metadata.rebuilt_rows import catalog_of
from headgate.metadata.sqlite_store import SqliteStore
from headgate.storage.store_binding import (
    MAIN_LOG,
    BindingError,
    LogPlace,
    check_binding,
)

Rows = Mapping[tuple[str, str], bytes]


@dataclass(frozen=True, slots=True)
class MetadataCheck:
    """The metadata of a data directory, as a start would find them."""

    logs: Mapping[str, LogFound]
    """What each log's directory tells, by the log's name."""
    rows: Rows | None
    """All rows; None if they are missing or unreadable."""
    problem: str = ""
    """Why a start refuses them; empty if it does not."""
    is_log_at_fault: bool = False
    """A log is older than the metadata, or missing."""
    copied: Rows | None = None
    """The rows of the copy; None if it is missing, damaged or of another directory."""
    copy_rest_bytes: int = 0
    """Bytes behind the last sound change of the copy."""
    copy_problem: str = ""
    """Why the copy is unusable; empty if it is usable or missing."""

    @property
    def data_id(self) -> str:
        """The id in the logs' identities; empty if none is readable."""
        ids = (found.identity.data_id for found in self.logs.values() if found.identity)
        return next(ids, "")

    def names(self, log: str) -> dict[int, str]:
        """The known names of a log's topics by number, of the copy if the metadata has none."""
        rows = self.copied if self.rows is None else self.rows
        if rows is None:
            return {}
        catalog = catalog_of(rows)
        numbers = catalog.topic_numbers_in("" if log == MAIN_LOG else log)
        found = {number: catalog.topic_by_number(number) for number in numbers}
        return {number: row.name for number, row in found.items() if row is not None}

    def known_identity(self, log: str) -> Identity | None:
        """The identity of a log by the metadata, if these are those of the log for certain."""
        if self.problem or self.rows is None:
            return None
        catalog = catalog_of(self.rows)
        row = catalog.identity
        is_proven = row.data_id == self.data_id or _is_ahead(catalog, self.copied)
        if log not in row.starts_by_log or not is_proven:
            return None
        starts = row.starts_by_log[log]
        return Identity(row.data_id, starts, catalog.topic_number_last, catalog.revision)


def check_metadata(path: str, logs: Sequence[str]) -> MetadataCheck:
    """Read metadata and copy of a data directory with these logs. Blocks; changes nothing.

    Raises :class:`UnknownFormatError` and :class:`StorageError`.
    """
    found = {log: look_at_log(OsFs(), f"{path}/{log}") for log in logs}
    places = {log: LogPlace(log, f"{path}/{log}", f"{path}/{METADATA_NAME}", found[log])
              for log in logs}  # fmt: skip
    copied, rest_bytes, copy_problem = _copied(path, found)
    rows, problem, is_log_at_fault = _stored(path, places, copied)
    return MetadataCheck(found, rows, problem, is_log_at_fault, copied, rest_bytes, copy_problem)


def _stored(
    path: str, places: Mapping[str, LogPlace], copied: Rows | None
) -> tuple[Rows | None, str, bool]:
    """The rows, why a start refuses them, and whether that is a log's fault. A lost identity is
    none if the rows tell it."""
    try:
        rows = _read_rows(path)
    except FileNotFoundError:
        return None, f"{METADATA_NAME} is missing", False
    except DamagedMetadataError as error:
        return None, error.problem, False
    except HeadgateError as error:
        return None, str(error), False
    try:
        catalog = catalog_of(rows)
    except CorruptionError as error:
        return None, str(error), False
    for log in {MAIN_LOG: None, **catalog.identity.starts_by_log, **places}:
        place = places.get(log)
        if place is None:
            text = f"{path}/{log} is missing, but {path}/{METADATA_NAME} says that it had messages"
            return rows, text, True
        found = place.found
        is_lost = found.damage or (found.identity is None and found.holds_records)
        if is_lost and (found.damage or _is_ahead(catalog, copied)):
            continue
        try:
            check_binding(catalog, place)
        except BindingError as error:
            if error.loss is None or error.loss != catalog.identity.accepted_loss:
                return rows, error.problem, error.loss == "log"
    return rows, "", False


def _is_ahead(catalog: Catalog, copied: Rows | None) -> bool:
    """Whether the copy, which lies in the log, proves that these metadata is the log's."""
    if not copied:
        return False
    other = catalog_of(copied)
    is_same = catalog.identity.data_id == other.identity.data_id
    return is_same and catalog.revision >= other.revision


def _copied(path: str, logs: Mapping[str, LogFound]) -> tuple[Rows | None, int, str]:
    """The rows of the copy, the damaged bytes at its end, and why it is unusable."""
    try:
        found = read_copy(OsFs(), f"{path}/{MAIN_LOG}")
        if found is None:
            return None, 0, ""
        data_id = catalog_of(found.rows).identity.data_id
    except CorruptionError as error:
        return None, 0, str(error)
    for log, there in logs.items():
        if there.identity is not None and there.identity.data_id != data_id:
            return None, 0, f"it is the copy of another directory than {log}: its id is {data_id}"
    return found.rows, found.rest_bytes, ""


def _read_rows(path: str) -> Rows:
    """All rows, from a copy of the files, because SQLite may change them when it opens them."""
    if problem := file_problem(str(Path(path, METADATA_NAME))):
        raise DamagedMetadataError(problem, "")
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        shutil.copyfile(Path(path, METADATA_NAME), Path(folder, METADATA_NAME))
        for suffix in ("-wal", "-journal"):  # what SQLite applies to the file
            beside = Path(path, METADATA_NAME + suffix)
            if beside.exists():
                shutil.copyfile(beside, Path(folder, beside.name))
        try:
            store = SqliteStore(str(Path(folder, METADATA_NAME)))
            try:
                return store.load()
            finally:
                store.close()
        except DamagedMetadataError as error:
            raise DamagedMetadataError(error.problem.replace(folder, path), "") from error
        except CorruptionError as error:
            raise CorruptionError(str(error).replace(folder, path)) from error
