"""Verify finds every damaged byte, and its costs are what a start then finds lost."""

from __future__ import annotations

import contextlib
import logging
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import CorruptionError
from headgate.base.units import MIB
from headgate.fs import MemFs
from headgate.ledger import CommitLog, LedgerSettings
from headgate.ledger.errors import OlderLogError, UnknownFormatError
from headgate.ledger.format.directory import write_file
from headgate.ledger.format.flush_position import FLUSH_POSITION_NAME
from headgate.ledger.format.identity import Identity, write_identity
from headgate.ledger.format.records import (
    BATCH_RECORD_BYTES,
    ENTRY_HEAD_BYTES,
    RUN_RECORD_BYTES,
    SEGMENT_HEADER_BYTES,
    checkpoint_names,
    segment_name,
    segment_of_checkpoint,
    segment_of_name,
)
from headgate.ledger.index.checkpoint import CheckpointBuilder, Counters
from headgate.ledger.space.hole_punching import PAGE_BYTES
from headgate.ledger.tools.findings import CostKind, Report
from headgate.ledger.tools.verify import verify_log
from tests.unit.ledger.space.test_hole_punching import SETTINGS as PUNCHING
from tests.unit.ledger.space.test_hole_punching import give_up
from tests.unit.ledger.space.test_maintenance import drain
from tests.unit.ledger.support import DIRECTORY, SMALL, append, commit, content, open_log, overwrite

TINY = replace(SMALL, segment_bytes=4096, extent_bytes=512, checkpoint_bytes=4096)
NAMES = {1: "one", 2: "two"}
ALL_BITS = 0xFF


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Thousands of damaged starts write no log lines."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def log_in_use() -> MemFs:
    """Two sealed segments before a checkpoint and one behind it, with a subscription, a trim and
    messages of both topics, after a crash."""
    fs = MemFs()
    log = open_log(fs, settings=TINY)
    log.create_cursor(1, "reader", AckSet(), {})
    for turn in range(3):
        append(log, 1, b"a" * 900, b"b" * 900, received_ms=1000 + turn)
        append(log, 2, b"c" * 900, received_ms=1000 + turn)
        log.run_maintenance()
    log.stage_trim(log.topic(2), 2)
    append(log, 1, b"last of one", received_ms=5000)
    append(log, 2, b"last of two", received_ms=5000)
    log._writer.flush_position.sync()
    return fs.crash_clone()


def verify(fs: MemFs) -> Report:
    return verify_log(fs, DIRECTORY, NAMES)


def used(fs: MemFs, name: str) -> range:
    """The bytes of a file that hold something."""
    return range(len(content(fs, f"{DIRECTORY}/{name}").rstrip(b"\0")))


def places(fs: MemFs, name: str) -> list[int]:
    """The same, with some bytes of each long body only."""
    data = content(fs, f"{DIRECTORY}/{name}")
    bodies = (b"a" * 9, b"b" * 9, b"c" * 9)
    return [at for at in used(fs, name) if at % 97 == 0 or data[at - 4 : at + 5] not in bodies]


def flipped(fs: MemFs, name: str, at: int, mask: int) -> MemFs:
    """The same directory with one byte changed."""
    copy, path = fs.crash_clone(), f"{DIRECTORY}/{name}"
    overwrite(copy, path, at, bytes([content(copy, path)[at] ^ mask]))
    return copy


def unreadable(log: CommitLog, number: int) -> set[int]:
    """Ordinals of a topic that a reader does not get."""
    topic = log.topic(number)
    lost = set()
    for ordinal in range(topic.first, topic.end):
        try:
            log.read(log.locate(topic, ordinal, 1, 1))
        except CorruptionError:
            lost.add(ordinal)
    return lost


def check_costs(
    report: Report, log: CommitLog, numbers: Iterable[int] = NAMES
) -> dict[int, set[int]]:
    """What verify says is lost is what a start finds lost, which is returned by topic."""
    costs = [cost for finding in report.damage for cost in finding.costs]
    every = any(cost.kind in (CostKind.SUBSCRIPTION, CostKind.STATE) for cost in costs)
    suspects = {cost.topic for cost in costs if cost.kind is CostKind.MAY_BE_LOST}
    said_acks = {c.subscription for c in costs if c.kind is CostKind.ACKNOWLEDGEMENTS}
    found_of: dict[int, set[int]] = {}
    for number in numbers:
        topic = log.topic(number)
        lost = {
            ordinal
            for cost in costs
            if cost.kind is CostKind.LOST and cost.topic == number
            for ordinal in range(cost.first, cost.stop)
        }
        found = found_of[number] = unreadable(log, number)
        if topic.damage:
            assert lost or every or number in suspects
            assert found <= lost or number in suspects or every
        else:
            assert lost == found
            assert number not in suspects
    damaged = {cursor.name for cursor in log.cursors() if cursor.damage}
    assert damaged <= said_acks or every
    assert said_acks <= damaged or every or suspects
    return found_of


def test_a_log_in_use_and_a_closed_one_are_sound() -> None:
    fs = log_in_use()
    report = verify(fs)
    assert report.damage == []
    assert report.entries >= 10
    assert report.read_bytes == sum(
        len(content(fs, f"{DIRECTORY}/{name}")) for name in fs.list_directory(DIRECTORY)
    )
    open_log(fs).close()
    assert verify(fs).damage == []


@pytest.mark.parametrize("mask", [ALL_BITS, 0x10])
def test_each_flipped_byte_is_found_and_costs_what_a_start_finds_lost(mask: int) -> None:
    """With one bit only, every fifth byte of a segment."""
    whole = log_in_use()
    for name in whole.list_directory(DIRECTORY):
        if name == "lock":
            continue
        step = 5 if mask != ALL_BITS and segment_of_name(name) is not None else 1
        for at in places(whole, name)[::step]:
            if name == FLUSH_POSITION_NAME and at % 4096 >= 44:
                continue  # unused room
            fs = flipped(whole, name, at, mask)
            if name == "format":
                with contextlib.suppress(UnknownFormatError):  # another version's number
                    assert verify(fs).damage[0].refuses_start
                continue
            report = verify(fs)
            released = [f for f in report.findings if f.what.endswith("was released before")]
            found = [f for f in [*report.damage, *released] if f.file == name]
            assert found, (name, at)
            if segment_of_name(name) is not None:
                assert any(f.offset <= at < f.offset + f.size_bytes for f in found), (name, at)
            check_costs(report, open_log(fs))


@pytest.mark.parametrize("keep", [64, 100, 700, 3000])
def test_a_truncated_or_missing_file_is_found(keep: int) -> None:
    whole = log_in_use()
    for name in whole.list_directory(DIRECTORY):
        if segment_of_name(name) is None or len(used(whole, name)) <= keep:
            continue
        fs = whole.crash_clone()
        file = fs.open(f"{DIRECTORY}/{name}", writable=True)
        file.truncate(keep)
        file.sync_data()
        report = verify(fs)
        assert name in {finding.file for finding in report.damage}
        try:
            log = open_log(fs)
        except CorruptionError:
            assert any(finding.refuses_start for finding in report.damage)
        else:
            check_costs(report, log)


def test_a_missing_segment_is_named_with_its_messages() -> None:
    fs = log_in_use()
    names = [n for n in fs.list_directory(DIRECTORY) if segment_of_name(n) is not None]
    fs.remove(f"{DIRECTORY}/{names[0]}")
    report = verify(fs)
    (finding,) = report.damage
    assert (finding.file, finding.size_bytes) == (names[0], 0)
    assert {cost.kind for cost in finding.costs} == {CostKind.LOST}
    ones = next(cost for cost in finding.costs if cost.topic == 1)
    assert (ones.first, ones.first_id) == (0, "1:0")
    assert open_log(fs).topic(1).damage


def test_a_missing_last_file_refuses_the_start() -> None:
    fs = log_in_use()
    names = [n for n in fs.list_directory(DIRECTORY) if segment_of_name(n) is not None]
    with_records = [n for n in names if len(used(fs, n)) > 64]
    fs.remove(f"{DIRECTORY}/{with_records[-1]}")
    report = verify(fs)
    assert any(f.refuses_start and f.file == with_records[-1] for f in report.damage)
    with pytest.raises(CorruptionError, match="is missing"):
        open_log(fs)


@pytest.mark.parametrize("is_first_there", [True, False])
def test_without_checkpoints_all_state_is_at_stake_unless_the_log_is_whole(
    is_first_there: bool,
) -> None:
    fs = log_in_use()
    if not is_first_there:
        fs.remove(f"{DIRECTORY}/{segment_name(1)}")
    for name in fs.list_directory(DIRECTORY):
        if segment_of_checkpoint(name) is not None:
            overwrite(fs, f"{DIRECTORY}/{name}", 20, b"????")
    report = verify(fs)
    checkpoints = [f for f in report.damage if segment_of_checkpoint(f.file) is not None]
    if is_first_there:
        assert checkpoints == report.damage
    kinds = {cost.kind for finding in checkpoints for cost in finding.costs}
    assert kinds == (set() if is_first_there else {CostKind.STATE})
    log = open_log(fs, settings=TINY)
    is_damaged = [bool(log.topic(number).damage) for number in NAMES]
    assert any(is_damaged) is not is_first_there


@pytest.mark.parametrize("lost", ["checkpoints", "newest checkpoint"])
def test_a_missing_segment_in_the_middle_refuses_only_if_a_checkpoint_tells_it(lost: str) -> None:
    """Without the newest checkpoint the file may have been deleted because nothing needed it."""
    fs = log_of_segments()
    log = open_log(fs.crash_clone(), settings=TINY)
    names = [n for n in fs.list_directory(DIRECTORY) if len(used(fs, n)) > 64 and ".log" in n]
    assert len(names) >= 4
    fs.remove(f"{DIRECTORY}/{names[1]}")
    fs.sync_directory(DIRECTORY)
    with pytest.raises(CorruptionError, match="is missing"):
        open_log(fs.crash_clone(), settings=TINY)
    (finding,) = verify(fs).damage
    assert finding.refuses_start
    if lost == "newest checkpoint":
        builder = CheckpointBuilder(1, 0)
        builder.add_counters(Counters(1, 1, 1, 1))
        builder.write(fs, DIRECTORY)
    for name in checkpoint_names(log._state.next_segment + 1):
        write_file(fs, DIRECTORY, name, [b"rubbish" * 9])
    report = verify(fs)
    assert not [finding for finding in report.damage if finding.refuses_start or finding.mends]
    missing = next(finding for finding in report.damage if finding.file == names[1])
    assert "deleted before" in missing.what
    check_costs(report, open_log(fs, settings=TINY))


def sealed(fs: MemFs) -> str:
    """The first segment, which a checkpoint covers."""
    return min(n for n in fs.list_directory(DIRECTORY) if segment_of_name(n) is not None)


def test_files_under_wrong_names_refuse_the_start_and_cost_nothing() -> None:
    fs = log_in_use()
    names = [n for n in fs.list_directory(DIRECTORY) if len(used(fs, n)) > 64 and ".log" in n]
    first, last = names[0], names[-1]
    contents = {name: content(fs, f"{DIRECTORY}/{name}") for name in (first, last)}
    for name, other in ((first, last), (last, first)):
        write_file(fs, DIRECTORY, name, [contents[other]])
    report = verify(fs)
    assert {f.file for f in report.damage} == {first, last}
    for finding, other in zip(report.damage, (last, first), strict=True):
        assert finding.refuses_start
        assert finding.what.startswith(f"the file is that of segment {other.removesuffix('.log')} ")
        assert finding.what.endswith(f"under a wrong name: it belongs under {other}")
        assert finding.costs == []


def test_the_end_of_a_file_that_was_cut_short_is_one_finding() -> None:
    fs = log_in_use()
    name = sealed(fs)
    file = fs.open(f"{DIRECTORY}/{name}", writable=True)
    file.truncate(content(fs, f"{DIRECTORY}/{name}").index(b"b" * 900) + 100)
    file.sync_data()
    (finding,) = [found for found in verify(fs).damage if found.file == name]
    assert finding.what.endswith("the file ends there, within a batch: it was cut short")
    assert finding.costs


def test_a_missing_footer_is_a_note_that_says_so() -> None:
    fs = log_in_use()
    name = sealed(fs)
    data = content(fs, f"{DIRECTORY}/{name}")
    overwrite(fs, f"{DIRECTORY}/{name}", len(data) - 40, bytes(40))
    report = verify(fs)
    assert report.damage == []
    (note,) = [found for found in report.findings if found.file == name]
    assert note.what.startswith("no footer behind the records: the file was cut short or partly")


def test_a_log_that_is_older_than_its_identity_refuses_the_start() -> None:
    fs = log_of_segments()
    old = fs.crash_clone()
    log = open_log(fs, settings=TINY)
    append(log, 1, b"today")
    identity = Identity("0" * 32, 1, 2, 3, log.last_batch)
    write_identity(old, DIRECTORY, identity)
    (finding,) = verify(old).damage
    assert (finding.file, finding.refuses_start, finding.mends) == ("identity", True, [])
    assert "accept-loss log" in finding.what
    assert {cost.topic for cost in finding.costs} >= set(NAMES)
    before = {name: content(old, f"{DIRECTORY}/{name}") for name in old.list_directory(DIRECTORY)}
    with pytest.raises(OlderLogError, match=f"and batch {log.last_batch} was durable"):
        open_log(old, settings=TINY, batch_min=identity.batch)
    assert before == {n: content(old, f"{DIRECTORY}/{n}") for n in old.list_directory(DIRECTORY)}
    write_identity(fs, DIRECTORY, identity)
    assert verify(fs.crash_clone()).damage == []
    open_log(fs.crash_clone(), settings=TINY, batch_min=identity.batch)


def log_of_segments() -> MemFs:
    """Some segments with messages of both topics, and no checkpoint, after a crash."""
    fs = MemFs()
    log = open_log(fs, settings=TINY)
    for turn in range(4):
        append(log, 1, b"a" * 900, b"b" * 900, received_ms=1000 + turn)
        append(log, 2, b"c" * 900, b"d" * 900, received_ms=1000 + turn)
    log._writer.flush_position.sync()
    return fs.crash_clone()


def test_a_torn_tail_is_a_note() -> None:
    fs = log_in_use()
    last = max(n for n in fs.list_directory(DIRECTORY) if len(used(fs, n)) > 64 and ".log" in n)
    overwrite(fs, f"{DIRECTORY}/{last}", len(used(fs, last)) + 1, b"half a batch")
    report = verify(fs)
    assert report.damage == []
    assert any("unfinished batch" in finding.what for finding in report.findings)


def test_leftovers_and_foreign_files_are_notes() -> None:
    fs = log_in_use()
    for name in (f"{segment_name(9)}.tmp", "notes.txt"):
        file = fs.create(f"{DIRECTORY}/{name}")
        file.write_at(0, [b"x"])
        file.sync_data()
    report = verify(fs)
    assert report.damage == []
    assert {"notes.txt", f"{segment_name(9)}.tmp"} <= {f.file for f in report.findings}


def test_damage_of_what_is_released_is_a_note() -> None:
    """It costs nothing, and a check said DAMAGED all the same."""
    fs = log_in_use()
    first = min(n for n in fs.list_directory(DIRECTORY) if segment_of_name(n) is not None)
    at = content(fs, f"{DIRECTORY}/{first}").index(b"c" * 900)
    overwrite(fs, f"{DIRECTORY}/{first}", at, b"????")
    report = verify(fs)
    assert report.damage == []
    (finding,) = [found for found in report.findings if "released before" in found.what]
    assert finding.costs == []
    report = verify_log(fs, DIRECTORY, {1: "one"})
    assert report.damage == []
    assert any(found.what.endswith("; its topic is deleted") for found in report.findings)


def test_names_are_not_needed() -> None:
    fs = log_in_use()
    assert verify_log(fs, DIRECTORY, None).damage == []


def test_progress_ends_with_all_bytes() -> None:
    steps: list[tuple[int, int]] = []
    verify_log(log_in_use(), DIRECTORY, NAMES, lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] > 0


def test_the_unit_log_commits() -> None:
    """The fixture has what the flips must reach."""
    fs = log_in_use()
    names = fs.list_directory(DIRECTORY)
    assert any(segment_of_checkpoint(name) is not None for name in names)
    log = open_log(fs)
    assert log.topic(2).first == 2
    assert [cursor.name for cursor in log.cursors()] == ["reader"]
    log.stage_entry(log.topic(1), 1, 9000, 0, b"more")
    commit(log)


def test_holes_across_released_messages_smaller_than_a_page_are_no_damage() -> None:
    fs = MemFs()
    log = open_log(fs, topics=[1, 2], settings=PUNCHING)
    for at in range(400):
        append(log, 1, b"a" * 1_000)
        if at % 40 == 0:
            append(log, 2, b"kept")
        log.run_maintenance()
    give_up(log)
    drain(log)
    log.close()
    assert bytes(2 * PAGE_BYTES) in content(fs, f"{DIRECTORY}/{segment_name(1)}")
    assert verify(fs).damage == []


def test_a_hole_that_takes_one_bit_of_a_record_is_no_damage() -> None:
    """The last bytes of a RUN record are those of a time, of which one bit is set since 2004."""
    fs = MemFs()
    log = open_log(fs, topics=[1, 2, 3], settings=PUNCHING)
    heads = 2 * (BATCH_RECORD_BYTES + RUN_RECORD_BYTES) + ENTRY_HEAD_BYTES
    now_ms = 1_796_034_901_701
    append(log, 1, b"a" * (PAGE_BYTES + 3 - SEGMENT_HEADER_BYTES - heads), received_ms=now_ms)
    append(log, 3, b"behind a record that ends three bytes behind a page", received_ms=now_ms)
    for at in range(400):
        append(log, 1, b"a" * 1_000, received_ms=now_ms)
        if at % 40 == 39:
            append(log, 2, b"kept", received_ms=now_ms)
        log.run_maintenance()
    give_up(log, 3)
    give_up(log)
    drain(log)
    log.close()
    data = content(fs, f"{DIRECTORY}/{segment_name(1)}")
    assert data[PAGE_BYTES - 8 : PAGE_BYTES + 8].strip(b"\0") == now_ms.to_bytes(8, "little")[:5]
    report = verify(fs)
    assert report.damage == []


def test_holes_across_messages_that_no_index_has_any_more_are_no_damage() -> None:
    """A topic that is deleted before its segment is sealed is not in the footer."""
    fs = MemFs()
    log = open_log(fs, topics=[1, 2], settings=PUNCHING)
    for _ in range(4):
        append(log, 2, b"kept")
        for _ in range(2):
            append(log, 1, b"a" * 3 * PAGE_BYTES)
    log.drop_topic(1)
    while log.topic(2).run_in(2) is None:
        append(log, 2, b"b" * 4_000)
        log.run_maintenance()
    drain(log)
    log.close()
    data = content(fs, f"{DIRECTORY}/{segment_name(1)}")
    assert b"kept" in data
    assert b"a" * 2 * PAGE_BYTES not in data
    assert verify_log(fs, DIRECTORY, {2: "two"}).damage == []


def test_of_two_large_checkpoints_one_is_in_memory() -> None:
    fs = MemFs()
    log = open_log(fs, settings=LedgerSettings(segment_bytes=MIB))
    for index in range(300):
        log.create_cursor(1, f"s{index}", AckSet(), {"k": "v" * 30_000})
        commit(log)
    log.close()
    (name,) = (name for name in fs.list_directory(DIRECTORY) if name.endswith(".checkpoint"))
    size_bytes = len(content(fs, f"{DIRECTORY}/{name}"))
    assert size_bytes > 300 * 30_000
    tracemalloc.start()
    report = verify_log(fs, DIRECTORY, NAMES)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not report.damage
    assert peak_bytes < 3.5 * size_bytes


def test_one_file_of_an_older_checkpoint_is_no_damage() -> None:
    """A kill may come between the removals of its two files."""
    fs = log_in_use()
    name = checkpoint_names(3)[0]
    assert name in fs.list_directory(DIRECTORY)
    assert checkpoint_names(4)[0] in fs.list_directory(DIRECTORY)
    fs.remove(f"{DIRECTORY}/{name}")
    report = verify(fs)
    assert report.damage == []
    assert name in [finding.file for finding in report.findings]
