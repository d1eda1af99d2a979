"""Recovery makes the log durable, and prepares its next segment."""

from __future__ import annotations

from headgate.base.ack_set import AckSet
from headgate.fs import MemFs
from headgate.ledger.format.records import segment_name
from tests.unit.ledger.support import (
    DIRECTORY,
    SMALL,
    append,
    bodies_of,
    open_log,
)


def crashed(fs: MemFs) -> MemFs:
    return fs.crash_clone()


def test_a_clean_close_leaves_nothing_to_replay_and_wastes_no_ids() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, b"a")
    first = topic.position(0).ledger_id
    acks = AckSet()
    cursor_id = log.create_cursor(1, "s", acks, {"k": "v"})
    acks.ack(0)
    log.close()
    after = fs.crash_clone()
    again = open_log(after)
    assert again.statistics().replayed_records == 0
    (cursor,) = again.cursors_of(1)
    assert (cursor.cursor_id, cursor.name, dict(cursor.properties)) == (cursor_id, "s", {"k": "v"})
    assert cursor.ack_set.mark_delete == 0
    assert append(again, 1, b"b").position(1) == (first + 1, 0)
    assert bodies_of(again, 1) == [b"a", b"b"]


def test_a_start_on_a_full_disk_refuses_entries_and_nothing_else() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"a")
    after = crashed(fs)
    after.make_directory("/others")
    after.create("/others/file").allocate(4 * SMALL.segment_bytes)
    after.capacity_bytes = after.used_bytes() - SMALL.segment_bytes + 1000
    again = open_log(after)
    assert again.full
    assert bodies_of(again, 1) == [b"a"]
    after.capacity_bytes = None
    again.run_maintenance()
    while again.full:
        job = again.maintenance_step()
        assert job is not None
        job.run()
        again.finish_job(job)
    append(again, 1, b"b")
    assert bodies_of(again, 1) == [b"a", b"b"]


def test_a_start_removes_no_file_of_others() -> None:
    """The directory may be a link to one with other files."""
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"a")
    log.close()
    own = ("format.tmp", "identity.tmp", "durable_end.tmp", "metadata.copy.tmp",
           f"{segment_name(9)}.tmp", f"{9:016x}.checkpoint.tmp")  # fmt: skip
    for name in (*own, "thesis.tmp", "notes.txt"):
        fs.create(f"{DIRECTORY}/{name}")
    fs.sync_directory(DIRECTORY)
    again = open_log(fs)
    names = fs.list_directory(DIRECTORY)
    assert {"thesis.tmp", "notes.txt"} <= set(names)
    assert not set(own) & set(names)
    again.close()
