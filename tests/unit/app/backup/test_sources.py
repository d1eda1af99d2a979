"""Which files of a data directory a backup has."""

from __future__ import annotations

import msgspec
import pytest

from headgate.app.backup.manifest import BackupError, LogEnd
from headgate.app.backup.sources import LogList, SourceList, running_source, stopped_source
from headgate.base.errors import InputError
from headgate.ledger.errors import DirectoryInUseError
from headgate.ledger.format.directory import write_file
from headgate.ledger.format.identity import Identity, write_identity
from tests.unit.app.backup.directories import DATA, TMP, empty_disk, fill


def test_a_stopped_directory_has_all_that_a_start_reads() -> None:
    fs = empty_disk()
    fill(fs)
    write_identity(fs, f"{DATA}/log", Identity("0" * 32, 1, 1, 1))
    for name in ("reserve", "broker.log", "metadata.sqlite3-wal"):
        write_file(fs, DATA, name, [b"x"])
    write_file(fs, f"{DATA}/log", "left.tmp", [b"x"])
    with stopped_source(fs, DATA) as source:
        paths = [file.path for file in source.files]
        segments = [file.segment for file in source.files if file.segment is not None]
        source.confirm()
    assert paths[:3] == ["format", "metadata.sqlite3", "metadata.sqlite3-wal"]
    own = [path for path in paths[3:] if not path.endswith(".log")]
    assert [path.rpartition(".")[2].removeprefix("log/") for path in own] == [
        "checkpoint",
        "checkpoint_copy",
        "durable_end",
        "format",
        "identity",
    ]
    assert len(segments) > 2
    assert source.data_id == "0" * 32
    assert source.ends["log"].batch > 0
    assert not source.running


def test_a_directory_with_a_broker_is_refused_with_the_way_out() -> None:
    fs = empty_disk()
    fill(fs)
    lock = fs.lock(f"{DATA}/lock")
    with pytest.raises(DirectoryInUseError, match="leave out --data-dir"), stopped_source(fs, DATA):
        pass
    lock.release()


def test_what_is_no_data_directory_is_refused() -> None:
    fs = empty_disk()
    with pytest.raises(InputError, match="is no data directory"), stopped_source(fs, "/missing"):
        pass
    with pytest.raises(InputError, match="is no data directory"), stopped_source(fs, TMP):
        pass
    fill(fs)
    write_file(fs, DATA, "restore-unfinished", [b""])
    with pytest.raises(InputError, match="unfinished restore"), stopped_source(fs, DATA):
        pass


class Held:
    data_path = DATA
    source_path = f"{DATA}/backup-source"

    def confirm(self) -> None:
        raise BackupError("not held")


def test_a_running_broker_says_how_much_of_each_segment_there_is() -> None:
    fs = empty_disk()
    fill(fs)
    fs.make_directory(Held.source_path)
    listed = SourceList("id", {"log": LogList(((3, 64), (4, 100)), LogEnd(9, 4, 100))})
    write_file(fs, Held.source_path, "files.json", [msgspec.json.encode(listed)])
    write_file(fs, Held.source_path, "metadata.sqlite3", [b"m"])
    write_file(fs, Held.source_path, "log~identity", [b"i"])
    source = running_source(fs, Held())
    assert [(file.path, file.place, file.size_bytes) for file in source.files] == [
        ("log/identity", f"{DATA}/backup-source/log~identity", 1),
        ("metadata.sqlite3", f"{DATA}/backup-source/metadata.sqlite3", 1),
        ("format", f"{DATA}/format", 16),
        ("log/0000000000000003.log", f"{DATA}/log/0000000000000003.log", 64),
        ("log/0000000000000004.log", f"{DATA}/log/0000000000000004.log", 100),
    ]
    assert (source.data_id, source.running) == ("id", True)
    assert source.ends == {"log": LogEnd(9, 4, 100)}
    with pytest.raises(BackupError, match="not held"):
        source.confirm()


def test_a_broker_on_another_host_is_named_as_the_reason() -> None:
    with pytest.raises(BackupError, match="run the command on the broker's host"):
        running_source(empty_disk(), Held())
