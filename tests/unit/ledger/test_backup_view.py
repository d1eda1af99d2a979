"""What a backup has of an open log: what is durable, and nothing that maintenance could delete."""

from __future__ import annotations

import pytest

from headgate.base.errors import StorageError
from headgate.fs import FaultyFs, MemFs
from headgate.ledger import Identity
from headgate.ledger.backup_view import copy_checkpoint
from headgate.ledger.format.flush_position import read_flush_position
from headgate.ledger.format.identity import look_at_log
from tests.unit.ledger.support import DIRECTORY, append, commit, open_log

COPY = "/copy"
BODY = b"x" * 3_000


def disk() -> MemFs:
    fs = MemFs()
    fs.make_directory(COPY)
    return fs


def test_it_ends_with_the_last_complete_batch() -> None:
    log = open_log(disk())
    append(log, 1, BODY)
    commit_end = log.backup_view(1).end
    assert log.backup_view(1).segments == ((1, commit_end.offset),)
    log.stage_entry(log.topic(1), 1, 1000, 0, BODY)
    assert log.backup_view(1).end == commit_end
    batch = log.seal_batch()
    assert batch is not None
    log.write_batch(batch)
    assert log.backup_view(1).end == commit_end
    log.complete(batch)
    assert log.backup_view(1).end.batch == commit_end.batch + 1


def test_an_empty_log_has_no_segments() -> None:
    view = open_log(disk()).backup_view(1)
    assert view.segments == ()
    assert (view.end.segment, view.end.offset) == (0, 0)


def test_dead_segments_stay_out_only_before_the_checkpoint() -> None:
    log = open_log(disk())
    for _ in range(12):
        append(log, 1, BODY)
    log.checkpoint()
    log.files_hold.begin()
    before = log.copy_checkpoint(COPY, "log~")
    log.stage_trim(log.topic(1), 11)
    commit(log)
    log.run_maintenance()
    everything = [segment for segment, _ in log.backup_view(1).segments]
    needed = [segment for segment, _ in log.backup_view(before).segments]
    assert len(needed) < len(everything)
    assert [segment for segment in everything if segment >= before] == [
        segment for segment in needed if segment >= before
    ]


def test_the_description_is_read_as_that_of_a_log() -> None:
    fs = disk()
    log = open_log(fs)
    append(log, 1, BODY)
    view, identity = log.backup_view(1), Identity("0" * 32, 1, 2, 3)
    log.describe(COPY, "", view, identity)
    assert read_flush_position(fs, COPY) == view.end
    assert look_at_log(fs, COPY).identity == identity
    assert fs.list_directory(COPY) == ["durable_end", "format", "identity"]
    log.describe(COPY, "other~", view, None)
    assert "other~identity" not in fs.list_directory(COPY)


def test_the_newest_sound_checkpoint_is_copied_twice() -> None:
    fs = disk()
    log = open_log(fs)
    assert log.copy_checkpoint(COPY, "") == 1
    append(log, 1, BODY)
    log.checkpoint()
    segment = log.copy_checkpoint(COPY, "")
    first, second = fs.list_directory(COPY)
    assert segment > 1
    fs.open(f"{DIRECTORY}/{first}", writable=True).write_at(20, [b"rot"])
    assert copy_checkpoint(fs, DIRECTORY, COPY, "") == segment
    fs.open(f"{DIRECTORY}/{second}", writable=True).write_at(20, [b"rot"])
    assert copy_checkpoint(fs, DIRECTORY, COPY, "") == 1


def test_an_error_of_the_disk_can_be_repeated() -> None:
    fs = disk()
    log = open_log(fs)
    append(log, 1, BODY)
    log.checkpoint()

    def fail(_: object) -> None:
        raise OSError(5, "input/output error")

    with pytest.raises(StorageError, match="input/output error") as caught:
        copy_checkpoint(FaultyFs(fs, fail), DIRECTORY, COPY, "")
    assert caught.value.retryable
