"""Rebuilds the metadata of a data directory that no broker has open.

The newest readable rows, of the copy in the log or of the metadata themselves, get an identity that
binds them to the logs. Topics that a log has and these rows do not know get names of their numbers.

Each step is durable before the next, in an order in which a crash leaves metadata that a start
refuses or the rebuilt ones: copies of the old files; the new file under another name; the old
files go, the main one first, since a write-ahead log or a rollback journal beside a file that it
does not belong to would be applied to it; the new file gets its name. A second repair begins again.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headgate.app.data_directory import METADATA_NAME
from headgate.app.metadata_check import MetadataCheck, Rows
from headgate.fs import Fs
from headgate.ledger.format.directory import METADATA_COPY_NAME, read_file, write_file
from headgate.ledger.tools.findings import Report
from headgate.metadata.file_check import SUFFIXES
from headgate.metadata.rebuilt_rows import LogFacts, RebuiltRows, catalog_of, rebuild_rows
from headgate.metadata.sqlite_store import SqliteStore
from headgate.metadata.store import Write
from headgate.storage.store_binding import MAIN_LOG

REBUILT_NAME: Final = "metadata.rebuilt.sqlite3"
REPORT_NAME: Final = "metadata.json"


@dataclass(frozen=True, slots=True)
class MetadataRepair:
    """New metadata for a directory."""

    source: str
    """The file that the rows come from; empty if the names of all topics are lost."""
    rebuilt: RebuiltRows

    @property
    def is_complete(self) -> bool:
        """Whether the logs know of nothing that these metadata lack."""
        rebuilt = self.rebuilt
        return bool(self.source) and not rebuilt.changes_lost and not rebuilt.made_names


def lacking_topics(check: MetadataCheck, reports: Mapping[str, Report]) -> str:
    """Why a start refuses metadata that :func:`check_metadata` found to belong to the logs: a log
    has topics that they never knew. Empty if none has."""
    if check.problem or check.rows is None:
        return ""
    last = catalog_of(check.rows).topic_number_last
    for log, report in reports.items():
        number = max(report.topics, default=0)
        if number > last:
            return (
                f"{METADATA_NAME} is older than {log}, or belongs to another one: {log} has "
                f"records of topic number {number}, and the highest number in the metadata is "
                f"{last}"
            )
    return ""


def plan_metadata(
    check: MetadataCheck, reports: Mapping[str, Report], *, cluster: str, now_ms: int
) -> MetadataRepair:
    """The metadata that copy, stored rows and logs make together. ``cluster`` is the cluster's
    name if no row tells it."""
    facts = [_facts(log, check, report) for log, report in reports.items()]
    sources: list[tuple[int, str, Rows]] = []
    for name, rows in (
        (METADATA_NAME, check.rows),
        (f"{MAIN_LOG}/{METADATA_COPY_NAME}", check.copied),
    ):
        if not rows:
            continue
        catalog = catalog_of(rows)
        if catalog.identity.data_id in (check.data_id, "") or not check.data_id:
            sources.append((catalog.revision, name, rows))
    _, source, best = max(sources, key=lambda found: found[0], default=(0, "", None))
    return MetadataRepair(source, rebuild_rows(best, facts, cluster=cluster, now_ms=now_ms))


def _facts(log: str, check: MetadataCheck, report: Report) -> LogFacts:
    identity = check.logs[log].identity
    topics_in = "" if log == MAIN_LOG else log
    if identity is None:
        return LogFacts(log, topics_in, "", 0, 0, 0, report.topics - {0})
    return LogFacts(
        log,
        topics_in,
        identity.data_id,
        identity.starts,
        identity.revision,
        identity.topic_number,
        report.topics - {0},
    )


def apply_metadata(fs: Fs, path: str, aside: str, problem: str, repair: MetadataRepair) -> None:
    """Put the rebuilt metadata in the place of what is there, which is kept in ``aside``. Blocks.

    Raises :class:`OSError` and :class:`StorageError`; a second repair then begins again.
    """
    above = aside.rpartition("/")[0]
    for folder in (above, aside):
        fs.make_directory(folder)
    for folder in (above, path):
        fs.sync_directory(folder)
    there = [name for name in _names() if name in fs.list_directory(path)]
    for name in there:
        write_file(fs, aside, name, [read_file(fs, f"{path}/{name}")])
    line = {
        "found": problem,
        "done": f"rebuilt from {repair.source or 'the numbers of the topics'}",
        "changesLost": repair.rebuilt.changes_lost,
        "madeNames": repair.rebuilt.made_names,
    }
    write_file(fs, aside, REPORT_NAME, [json.dumps(line).encode(), b"\n"])
    write_file(fs, path, REBUILT_NAME, [_stored_form(repair.rebuilt.rows)])
    for name in there:
        with contextlib.suppress(FileNotFoundError):
            fs.remove(f"{path}/{name}")
        fs.sync_directory(path)
    fs.rename(f"{path}/{REBUILT_NAME}", f"{path}/{METADATA_NAME}")
    fs.sync_directory(path)


def _names() -> list[str]:
    """The files of the metadata, the main one first."""
    return [METADATA_NAME + suffix for suffix in SUFFIXES]


def _stored_form(rows: Rows) -> bytes:
    """The bytes of a file of metadata with these rows."""
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        file = Path(folder, METADATA_NAME)
        store = SqliteStore(str(file))
        try:
            store.commit([Write(kind, key, value) for (kind, key), value in rows.items()])
        finally:
            store.close()
        return file.read_bytes()
