"""Checks, repairs and lists the logs of a data directory that no broker has open."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from headgate.app.data_directory import METADATA_NAME, check_restored, format_damage
from headgate.base.errors import HeadgateError, InputError
from headgate.fs import OsFs
from headgate.ledger.errors import DirectoryInUseError
from headgate.ledger.tools.dump import DumpChoice, dump_log
from headgate.ledger.tools.findings import Cost, CostKind, Finding, Mend, Report
from headgate.ledger.tools.repair import (
    Repair,
    apply_repairs,
    plan_repairs,
    repair_log,
)
from headgate.ledger.tools.verify import verify_log
from headgate.metadata.rows import Kind, TopicRow
from headgate.metadata.sqlite_store import SqliteStore
from headgate.storage.managed_logs import LOGS
from headgate.storage.store_binding import MAIN_LOG

Row = dict[str, Any]
"""An object of JSON."""

_METADATA_SUFFIXES: Final = ("", "-wal")


@dataclass(frozen=True, slots=True)
class MetadataFound:
    """The topics that the metadata knows."""

    names_by_log: dict[str, dict[int, str]] | None
    """Full names by number, for each log; None if the metadata is unreadable."""
    problem: str = ""
    """Why it is unreadable; empty if it is sound."""

    def names(self, log: str) -> dict[int, str] | None:
        """The names of the topics of one log; None if they are unknown."""
        return None if self.names_by_log is None else self.names_by_log.get(log, {})


def verify_directory(
    path: str, progress: Callable[[str, int, int], None] = lambda _log, _done, _all: None
) -> Row:
    """Read all files of a data directory and find what is damaged. Blocks; changes nothing.

    Returns the object that ``headgate ledger verify --json`` prints. ``progress`` gets the name of
    a log, the bytes that are read, and all of them.

    Raises:
        InputError: it is no data directory.
        DirectoryInUseError: a broker runs on it.
        UnknownFormatError: it is of a later release.
        OSError: a file cannot be read.
    """
    with _owned(path) as logs:
        metadata, own = _read_metadata(path), _check_own_files(path)
        is_sound, rows = not metadata.problem and not own.damage, []
        for log in logs:
            names = metadata.names(log)
            report = verify_log(OsFs(), f"{path}/{log}", names, partial(progress, log))
            rows.append(_log_row(log, report, names or {}))
            is_sound = is_sound and not report.damage
        problem = metadata.problem or None
        return {
            "directory": path,
            "isSound": is_sound,
            "metadataProblem": problem,
            "findings": [_finding_row(finding, {}) for finding in own.findings],
            "logs": rows,
        }


def repair_directory(path: str, *, dry_run: bool = False) -> Row:
    """Repair what verify finds in the logs, where a checksum or a second copy proves what was
    there. Blocks.

    Keeps the bytes before each change in a new folder of the data directory. With ``dry_run`` it
    changes nothing. Returns the object that ``headgate ledger repair --json`` prints.

    Raises as :func:`verify_directory`.
    """
    with _owned(path) as logs:
        metadata = _read_metadata(path)
        aside = _new_folder(path)
        own = plan_repairs(OsFs(), path, _check_own_files(path))
        if own and not dry_run:
            apply_repairs(OsFs(), path, f"{aside}/directory", own)
        repairs = [_repair_row("", repair, {}) for repair in own]
        rows: list[Row] = []
        for log in logs:
            names = metadata.names(log)
            if dry_run:
                report = verify_log(OsFs(), f"{path}/{log}", names)
                done = plan_repairs(OsFs(), f"{path}/{log}", report)
                report.findings = [found for found in report.findings if not found.mends]
            else:
                done, report = repair_log(OsFs(), f"{path}/{log}", f"{aside}/{log}", names)
            repairs += [_repair_row(log, repair, names or {}) for repair in done]
            rows.append(_log_row(log, report, names or {}))
        is_sound = not metadata.problem and not any(
            finding["isDamage"] for row in rows for finding in row["findings"]
        )
        return {
            "directory": path,
            "dryRun": dry_run,
            "isSound": is_sound and not (dry_run and repairs),
            "copies": aside if repairs and not dry_run else None,
            "repairs": repairs,
            "metadataProblem": metadata.problem or None,
            "logs": rows,
        }


def _check_own_files(path: str) -> Report:
    """Check the files of a data directory beside its logs and its metadata."""
    report = Report()
    damage, line = format_damage(OsFs(), path)
    if damage:
        finding = report.add("format", 0, 0, damage)
        finding.refuses_start = True
        finding.mends = [Mend("format", "write the line of this release's format", line)]
    return report


def _new_folder(path: str) -> str:
    """A folder of the data directory that does not exist yet, for the copies of a repair."""
    name = f"{path}/repaired-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    found, turn = name, 1
    while Path(found).exists():
        turn += 1
        found = f"{name}-{turn}"
    return found


def _repair_row(log: str, repair: Repair, names: dict[int, str]) -> Row:
    return {
        "log": log,
        **_finding_row(repair.finding, names),
        "changed": repair.mend.file,
        "change": repair.mend.what,
        "copy": repair.copy or None,
    }


def dump_directory(
    path: str,
    log: str,
    *,
    topic: str | None = None,
    segment: int | None = None,
    ordinal_min: int = 0,
    with_bodies: bool = False,
) -> Iterator[Row]:
    """The records of a log as rows with the names of topics. ``topic`` is a name or a number, the
    other choices are those of :class:`headgate.ledger.tools.dump.DumpChoice`.

    Raises as :func:`verify_directory`, and :class:`InputError` for an unknown log or topic.
    """
    with _owned(path) as logs:
        if log not in logs:
            raise InputError(f"{path} has no log {log!r}; it has {', '.join(logs)}")
        names = _read_metadata(path).names(log) or {}
        wanted = None if topic is None else _number_of(topic, names)
        choice = DumpChoice(wanted, segment, ordinal_min, with_bodies)
        for row in dump_log(OsFs(), f"{path}/{log}", choice):
            number = row.get("topicNumber")
            name = names.get(number) if isinstance(number, int) else None
            yield row if name is None else {**row, "topic": name}


def _log_row(log: str, report: Report, names: dict[int, str]) -> Row:
    return {
        "log": log,
        "files": report.files,
        "readBytes": report.read_bytes,
        "batches": report.batches,
        "soundEntries": report.entries,
        "findings": [_finding_row(finding, names) for finding in report.findings],
    }


def _finding_row(finding: Finding, names: dict[int, str]) -> Row:
    return {
        "file": finding.file,
        "offset": finding.offset,
        "bytes": finding.size_bytes,
        "what": finding.what,
        "isDamage": finding.is_damage,
        "refusesStart": finding.refuses_start,
        "costs": [_cost_row(cost, names) for cost in finding.costs],
    }


def _cost_row(cost: Cost, names: dict[int, str]) -> Row:
    row: Row = {"kind": str(cost.kind)}
    if cost.topic:
        row |= {"topicNumber": cost.topic, "topic": names.get(cost.topic)}
    if cost.kind in (CostKind.LOST, CostKind.MAY_BE_LOST):
        row |= {"firstOrdinal": cost.first, "firstMessageId": cost.first_id or None}
    if cost.stop:
        row |= {
            "lastOrdinal": cost.stop - 1,
            "lastMessageId": cost.last_id or None,
            "entries": cost.entries,
        }
    if cost.subscription:
        row["subscription"] = cost.subscription
    return row


def _number_of(topic: str, names: dict[int, str]) -> int:
    if topic.isdecimal():
        return int(topic)
    number = next((number for number, name in names.items() if name == topic), None)
    if number is None:
        raise InputError(
            f"the metadata has no topic {topic!r} in this log; give its full name or its number"
        )
    return number


@contextmanager
def _owned(path: str) -> Iterator[list[str]]:
    """Hold the lock of a data directory; the names of its logs."""
    logs = [name for name in LOGS if Path(path, name).is_dir()]
    if not logs:
        raise InputError(f"--data-dir {path} is no data directory: it has no log")
    try:
        lock = OsFs().lock(f"{path}/lock")
    except BlockingIOError as error:
        raise DirectoryInUseError(
            f"a broker runs on data directory {path}: stop it first"
        ) from error
    try:
        check_restored(OsFs(), path)
        yield logs
    finally:
        lock.release()


def _read_metadata(path: str) -> MetadataFound:
    """Read a copy of the metadata, because opening SQLite's files may change them."""
    if not Path(path, METADATA_NAME).exists():
        return MetadataFound(None, f"{METADATA_NAME} is missing")
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        for suffix in _METADATA_SUFFIXES:
            source = Path(path, METADATA_NAME + suffix)
            if source.exists():
                shutil.copyfile(source, Path(folder, METADATA_NAME + suffix))
        try:
            store = SqliteStore(str(Path(folder, METADATA_NAME)))
            try:
                rows = store.load()
            finally:
                store.close()
        except HeadgateError as error:
            return MetadataFound(None, str(error).replace(folder, path))
    names: dict[str, dict[int, str]] = {}
    for (kind, _), value in rows.items():
        if kind == Kind.TOPIC:
            row = msgspec.json.decode(value, type=TopicRow)
            names.setdefault(row.log or MAIN_LOG, {})[row.number] = row.name
    return MetadataFound(names)
