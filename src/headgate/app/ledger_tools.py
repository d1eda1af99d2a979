"""Checks, repairs and lists the logs of a data directory that no broker has open."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from headgate.app.data_directory import check_restored, format_damage
from headgate.app.metadata_check import MetadataCheck, check_metadata
from headgate.app.metadata_repair import (
    MetadataRepair,
    apply_metadata,
    lacking_topics,
    plan_metadata,
)
from headgate.base.errors import CorruptionError, InputError
from headgate.base.units import MS_PER_S
from headgate.fs import OsFs
from headgate.ledger.errors import DirectoryInUseError
from headgate.ledger.format.directory import METADATA_COPY_NAME
from headgate.ledger.tools.dump import DumpChoice, dump_log
from headgate.ledger.tools.findings import Cost, CostKind, Finding, Mend, Report
from headgate.ledger.tools.repair import (
    Repair,
    apply_repairs,
    plan_repairs,
    repair_log,
)
from headgate.ledger.tools.verify import verify_log
from headgate.metadata.copy_format import encode_copy
from headgate.metadata.rows import Kind
from headgate.storage.managed_logs import LOGS
from headgate.storage.store_binding import MAIN_LOG

Row = dict[str, Any]
"""An object of JSON."""


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
        found, own = _Found.read(path, logs, progress), _check_own_files(path)
        rows = [_log_row(log, found.reports[log], found.names(log)) for log in logs]
        damage = [*own.damage, *found.copy.damage]
        damage += [finding for report in found.reports.values() for finding in report.damage]
        return {
            "directory": path,
            "isSound": not found.problem and not damage,
            "metadataProblem": found.problem or None,
            "metadataRepair": found.repair_row(),
            "findings": [
                *(_finding_row(finding, {}) for finding in own.findings),
                *({"log": MAIN_LOG, **_finding_row(f, {})} for f in found.copy.findings),
            ],
            "logs": rows,
        }


def repair_directory(
    path: str, *, dry_run: bool = False, rebuild_metadata: bool = False, cluster: str = "standalone"
) -> Row:
    """Repair what verify finds, where a checksum or a second copy proves what was there. Blocks.

    Keeps the bytes before each change in a new folder of the data directory. With ``dry_run`` it
    changes nothing. Metadata that a start refuses are rebuilt if the copy in the log has all that
    the logs know of; with ``rebuild_metadata`` also if something is lost, and without a copy, then
    for the cluster of this name. Returns the object that ``headgate ledger repair --json`` prints.

    Raises as :func:`verify_directory`.
    """
    with _owned(path) as logs:
        aside = _new_folder(path)
        repairs = _repair_files(path, "", aside, _check_own_files(path), dry_run=dry_run)
        found = _Found.read(path, logs, cluster=cluster)
        rebuilt, problem = found.repair_row(), found.problem
        is_rebuilt = found.repair is not None and (found.repair.is_complete or rebuild_metadata)
        if rebuilt is not None:
            rebuilt |= {"found": problem, "isDone": is_rebuilt}
        if found.repair is not None and is_rebuilt and not dry_run:
            apply_metadata(OsFs(), path, f"{aside}/directory", problem, found.repair)
            found = _Found.read(path, logs)
        repairs += _repair_files(path, MAIN_LOG, aside, found.copy, dry_run=dry_run)
        rows = [_repair_log(path, log, aside, found, repairs, dry_run=dry_run) for log in logs]
        is_changed = bool(repairs) or is_rebuilt
        is_sound = not found.problem and not any(
            finding["isDamage"] for row in rows for finding in row["findings"]
        )
        return {
            "directory": path,
            "dryRun": dry_run,
            "isSound": is_sound and not (dry_run and is_changed),
            "copies": aside if is_changed and not dry_run else None,
            "repairs": repairs,
            "metadataProblem": (None if is_rebuilt else found.problem) or None,
            "metadataRepair": rebuilt,
            "logs": rows,
        }


def _repair_log(
    path: str, log: str, aside: str, found: _Found, repairs: list[Row], *, dry_run: bool
) -> Row:
    """Repair one log. Adds the changes to ``repairs``, and returns what is damaged after them."""
    names = found.names(log)
    if dry_run:
        report = found.reports[log]
        done = plan_repairs(OsFs(), f"{path}/{log}", report)
        report.findings = [finding for finding in report.findings if not finding.mends]
    else:
        identity = found.check.known_identity(log)
        done, report = repair_log(
            OsFs(), f"{path}/{log}", f"{aside}/{log}", found.existing(log), identity
        )
    repairs += [_repair_row(log, repair, names) for repair in done]
    return _log_row(log, report, names)


class _Found:
    """What a check of a data directory found."""

    def __init__(self, check: MetadataCheck, reports: dict[str, Report], cluster: str) -> None:
        self.check = check
        self.reports = reports
        self.problem = check.problem or lacking_topics(check, reports)
        """Why a start refuses the metadata; empty if it does not."""
        self.copy = _check_copy(check)
        self.repair: MetadataRepair | None = None
        """How the metadata can be rebuilt; None if they are sound, or a log is at fault."""
        if self.problem and not check.is_log_at_fault:
            now_ms = int(datetime.now(UTC).timestamp() * MS_PER_S)
            self.repair = plan_metadata(check, reports, cluster=cluster, now_ms=now_ms)

    @classmethod
    def read(
        cls,
        path: str,
        logs: list[str],
        progress: Callable[[str, int, int], None] = lambda _log, _done, _all: None,
        *,
        cluster: str = "",
    ) -> _Found:
        """Check everything."""
        check = check_metadata(path, logs)
        reports = {
            log: verify_log(
                OsFs(),
                f"{path}/{log}",
                None if check.problem else check.names(log),
                partial(progress, log),
                check.known_identity(log),
            )
            for log in logs
        }
        return cls(check, reports, cluster)

    def existing(self, log: str) -> dict[int, str] | None:
        """The topics of a log that exist, with their names; None if that is unknown."""
        return None if self.check.problem else self.names(log)

    def names(self, log: str) -> dict[int, str]:
        """The names of a log's topics that are known, by number."""
        return self.check.names(log)

    def repair_row(self) -> Row | None:
        """The object that describes :attr:`repair`."""
        if self.repair is None:
            return None
        rebuilt = self.repair.rebuilt
        kinds = Counter(kind for kind, _ in rebuilt.rows)
        return {
            "source": self.repair.source or None,
            "isComplete": self.repair.is_complete,
            "tenants": kinds[Kind.TENANT],
            "namespaces": kinds[Kind.NAMESPACE],
            "topics": kinds[Kind.TOPIC],
            "changesLost": rebuilt.changes_lost,
            "madeNames": [
                {"topicNumber": number, "topic": name}
                for number, name in sorted(rebuilt.made_names.items())
            ],
        }


def _check_copy(check: MetadataCheck) -> Report:
    """What is wrong with the copy of the metadata beside the main log."""
    report = Report()
    is_sound = not check.problem and check.rows is not None
    if check.copy_problem:
        what = check.copy_problem
        if is_sound:
            what += "; the metadata is sound, and a start writes it anew"
        finding = report.add(METADATA_COPY_NAME, 0, 0, what)
        if is_sound and check.rows is not None:
            content = b"".join(encode_copy(check.rows)[0])
            finding.mends = [Mend(METADATA_COPY_NAME, "write it anew from the metadata", content)]
    elif check.copied is None:
        what = "there is no copy of the metadata; a start writes it"
        report.add(METADATA_COPY_NAME, 0, 0, what, is_damage=False)
    elif check.copy_rest_bytes:
        what = "its last change is cut short or damaged; a start writes it anew"
        report.add(METADATA_COPY_NAME, 0, 0, what, is_damage=False)
    return report


def _repair_files(path: str, log: str, aside: str, report: Report, *, dry_run: bool) -> list[Row]:
    """Repair files of a log's directory, or of the data directory if ``log`` is empty."""
    if not any(finding.mends for finding in report.findings):
        return []
    directory = f"{path}/{log}" if log else path
    repairs = plan_repairs(OsFs(), directory, report)
    if repairs and not dry_run:
        apply_repairs(OsFs(), directory, f"{aside}/{log or 'directory'}", repairs)
    return [_repair_row(log, repair, {}) for repair in repairs]


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
        names = check_metadata(path, logs).names(log)
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
    except (struct.error, UnicodeDecodeError) as error:
        # Only of a record with a sound checksum: damage has a wrong one.
        raise CorruptionError(
            f"{path}: a record has a sound checksum, and not the content of its kind: something "
            f"else than Headgate has made it ({error})"
        ) from error
    finally:
        lock.release()
