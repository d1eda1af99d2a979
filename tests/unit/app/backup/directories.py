"""Data directories and backups in memory, for the tests of this folder."""

from __future__ import annotations

from headgate.app.backup.copying import Pace
from headgate.app.backup.folder import BackupFolder
from headgate.app.backup.sources import stopped_source
from headgate.app.backup.take import BackupTaken, take_backup
from headgate.base.ack_set import AckSet
from headgate.fs import Fs, MemFs
from headgate.ledger import CommitLog, LedgerSettings
from headgate.ledger.format.directory import read_file, write_file

TMP, DATA, BACKUP, NEW = "/tmp", "/data", "/backup", "/new"
SMALL = LedgerSettings(segment_bytes=16_384)


def free_pace() -> Pace:
    return Pace(0, lambda: 0.0, lambda _: None)


def open_log(fs: Fs, data: str = DATA) -> CommitLog:
    return CommitLog.open(
        fs, f"{data}/log", topic_numbers=[1], entropy=lambda size: b"\5" * size, settings=SMALL
    )


def publish(log: CommitLog, count: int, size: int = 3_000) -> None:
    """Append entries with different bodies, one batch each, with the maintenance between."""
    for _ in range(count):
        ordinal = log.stage_entry(log.topic(1), 1, 1000, 0, ordinal_body(log, size))
        assert ordinal >= 0
        batch = log.seal_batch()
        assert batch is not None
        log.commit(batch)
        log.run_maintenance()


def ordinal_body(log: CommitLog, size: int) -> bytes:
    return f"{log.topic(1).staged_end:08d}".encode() * (size // 8)


def fill(fs: Fs, count: int = 12, data: str = DATA) -> None:
    """A directory with one topic, a subscription, and several segments."""
    fs.make_directory(data)
    if "format" not in fs.list_directory(data):
        write_file(fs, data, "format", [b"headgate-data 1\n"])
        write_file(fs, data, "metadata.sqlite3", [b"metadata" * 500])
    log = open_log(fs, data)
    if not list(log.cursors()):
        log.create_cursor(1, "billing", AckSet(), {})
    publish(log, count)
    log.close()


def bodies(fs: Fs, data: str = DATA) -> list[bytes]:
    """The entries that a start on a directory finds."""
    log = open_log(fs, data)
    topic = log.topic(1)
    found: list[bytes] = []
    at = topic.first
    while at < topic.end:
        plan = log.locate(topic, at, 1, 1 << 20)
        found += [body for _, _, body in log.read(plan)]
        at += 1
    log.close()
    return found


def take(fs: Fs, keep: int = 2, *, check: bool = False) -> BackupTaken:
    """Back up the stopped directory."""
    folder = BackupFolder.create(fs, BACKUP)
    try:
        with stopped_source(fs, DATA) as source:
            return take_backup(source, folder, free_pace(), "now", keep=keep, check=check)
    finally:
        folder.close()


def content(fs: Fs, path: str) -> dict[str, bytes]:
    """The files of a data directory by their path in it."""
    found = {}
    for name in fs.list_directory(path):
        if name in ("format", "metadata.sqlite3"):
            found[name] = read_file(fs, f"{path}/{name}")
    for name in fs.list_directory(f"{path}/log"):
        if name != "lock":
            found[f"log/{name}"] = read_file(fs, f"{path}/log/{name}")
    return found


def empty_disk() -> MemFs:
    fs = MemFs()
    fs.make_directory(TMP)
    return fs
