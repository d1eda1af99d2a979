"""A repair keeps a copy of all that it changes, loses nothing more, and lets a broker start."""

from __future__ import annotations

import json
import random

import pytest

from headgate.fs import FaultyFs, MemFs
from headgate.ledger.format.directory import read_file
from headgate.ledger.format.flush_position import FLUSH_POSITION_NAME
from headgate.ledger.format.identity import IDENTITY_NAME, Identity, look_at_log, write_identity
from headgate.ledger.format.records import segment_of_checkpoint, segment_of_name
from headgate.ledger.tools.repair import REPORT_NAME, plan_repairs, repair_log
from tests.sim.test_ledger_power_cuts import PowerCutError, cut_at
from tests.unit.ledger.support import DIRECTORY, bodies_of, content, open_log, overwrite
from tests.unit.ledger.tools.test_verify import (
    NAMES,
    check_costs,
    flipped,
    log_in_use,
    places,
    unreadable,
    used,
    verify,
)

ASIDE = "/aside"


def bound_log() -> MemFs:
    fs = log_in_use()
    write_identity(fs, DIRECTORY, Identity("0" * 32, 1, 2, 3))
    return fs


def all_files(fs: MemFs) -> dict[str, bytes]:
    return {name: content(fs, f"{DIRECTORY}/{name}") for name in fs.list_directory(DIRECTORY)}


@pytest.mark.parametrize("mask", [0x04, 0xFF])
def test_after_a_repair_a_start_goes_on_and_loses_nothing_more(mask: int) -> None:
    whole = bound_log()
    for name in whole.list_directory(DIRECTORY):
        if name in ("lock", "format"):
            continue
        step = 1 if segment_of_name(name) is None else 5
        for at in places(whole, name)[::step]:
            if name == FLUSH_POSITION_NAME and at % 4096 >= 44:
                continue  # unused room
            fs = flipped(whole, name, at, mask)
            damaged = fs.crash_clone()
            _, left = repair_log(fs, DIRECTORY, ASIDE, NAMES)
            log = open_log(fs.crash_clone())
            lost = check_costs(left, log)
            if any(lost.values()) or any(log.topic(number).damage for number in NAMES):
                before = open_log(damaged)
                for number in NAMES:
                    assert lost[number] <= unreadable(before, number)
                    assert not log.topic(number).damage or before.topic(number).damage


def test_one_wrong_bit_in_a_record_is_gone_and_its_message_back() -> None:
    whole = bound_log()
    name = min(n for n in whole.list_directory(DIRECTORY) if segment_of_name(n) is not None)
    at = content(whole, f"{DIRECTORY}/{name}").index(b"b" * 900) - 20
    fs = flipped(whole, name, at, 2)
    (finding,) = verify(fs).damage
    assert [cost.entries for cost in finding.costs] == [1]
    (repair,), report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert report.damage == []
    assert all_files(fs) == all_files(whole)
    kept = read_file(fs, f"{ASIDE}/{repair.copy}")
    assert repair.copy == f"{name}.offset-{finding.offset}"
    data = content(whole, f"{DIRECTORY}/{name}")[finding.offset : finding.offset + len(kept)]
    assert sum(a != b for a, b in zip(kept, data, strict=True)) == 1


@pytest.mark.parametrize("name", ["identity", "format"])
def test_small_files_are_written_from_what_is_sound(name: str) -> None:
    whole = bound_log()
    fs = flipped(whole, name, 3, 1)
    _, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert report.damage == []
    assert all_files(fs) == all_files(whole)
    assert content(fs, f"{ASIDE}/{name}") != content(whole, f"{DIRECTORY}/{name}")


def test_checkpoints_are_written_from_their_copies() -> None:
    whole = bound_log()
    for name in whole.list_directory(DIRECTORY):
        if segment_of_checkpoint(name) is None:
            continue
        for is_gone in (False, True):
            fs = flipped(whole, name, 30, 0xFF)
            if is_gone:
                fs.remove(f"{DIRECTORY}/{name}")
                fs.sync_directory(DIRECTORY)
            repairs, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
            assert report.damage == []
            assert all_files(fs) == all_files(whole)
            assert [repair.copy for repair in repairs] == ["" if is_gone else name]


def test_a_missing_last_file_is_given_up_with_what_it_costs() -> None:
    fs = bound_log()
    last = max(n for n in fs.list_directory(DIRECTORY) if len(used(fs, n)) > 64 and ".log" in n)
    fs.remove(f"{DIRECTORY}/{last}")
    fs.sync_directory(DIRECTORY)
    write_identity(fs, DIRECTORY, Identity("0" * 32, 1, 2, 3, batch=1000))
    repairs, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert [repair.mend.file for repair in repairs] == [FLUSH_POSITION_NAME, IDENTITY_NAME]
    assert repairs[0].finding.costs
    assert not any(finding.refuses_start for finding in report.findings)
    assert {FLUSH_POSITION_NAME, IDENTITY_NAME} <= set(fs.list_directory(ASIDE))
    assert look_at_log(fs, DIRECTORY).identity == Identity("0" * 32, 1, 2, 3)
    open_log(fs)


def test_a_file_that_is_moved_away_is_not_repaired_as_well() -> None:
    fs = bound_log()
    last = max(n for n in fs.list_directory(DIRECTORY) if len(used(fs, n)) > 64 and ".log" in n)
    fs.remove(f"{DIRECTORY}/{last}")
    fs.sync_directory(DIRECTORY)
    at = 9 if content(fs, f"{DIRECTORY}/{FLUSH_POSITION_NAME}")[4096:].strip(b"\0") else 4100
    fs = flipped(fs, FLUSH_POSITION_NAME, at, 1)
    assert sum(bool(finding.mends) for finding in verify(fs).damage) == 2
    repairs, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert [repair.mend.content for repair in repairs] == [None]
    assert not any(finding.refuses_start for finding in report.findings)


def test_a_missing_file_in_the_middle_is_made_empty() -> None:
    fs = MemFs()
    log = open_log(fs)
    for turn in range(3):
        for number in NAMES:
            for _ in range(4):
                log.stage_entry(log.topic(number), 1, 1000 + turn, 0, b"d" * 900)
            batch = log.seal_batch()
            assert batch is not None
            log.commit(batch)
    log._writer.flush_position.sync()
    fs = fs.crash_clone()
    names = [n for n in fs.list_directory(DIRECTORY) if len(used(fs, n)) > 64 and ".log" in n]
    assert len(names) >= 3
    fs.remove(f"{DIRECTORY}/{names[1]}")
    fs.sync_directory(DIRECTORY)
    (finding,) = verify(fs).damage
    assert (finding.file, finding.refuses_start) == (names[1], True)
    assert {cost.topic for cost in finding.costs} == set(NAMES)
    _, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert not any(found.refuses_start for found in report.findings)
    log = open_log(fs)
    assert any(log.topic(number).damage for number in NAMES)


def test_nothing_is_made_where_nothing_is_to_repair() -> None:
    fs = bound_log()
    assert repair_log(fs, DIRECTORY, ASIDE, NAMES)[0] == []
    with pytest.raises(FileNotFoundError):
        fs.list_directory(ASIDE)
    assert plan_repairs(fs, DIRECTORY, verify(fs)) == []


def test_a_body_is_never_changed() -> None:
    whole = bound_log()
    name = min(n for n in whole.list_directory(DIRECTORY) if segment_of_name(n) is not None)
    fs = flipped(whole, name, content(whole, f"{DIRECTORY}/{name}").index(b"b" * 900) + 9, 1)
    repairs, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert repairs == []
    assert len(report.damage) == 1
    assert bodies_of(open_log(fs), 2)


def damaged() -> MemFs:
    """Four places that a repair mends, in a segment, a checkpoint, the identity and a slot."""
    fs = bound_log()
    segment = min(n for n in fs.list_directory(DIRECTORY) if segment_of_name(n) is not None)
    newest = max(n for n in fs.list_directory(DIRECTORY) if n.endswith(".checkpoint"))
    for name, at in ((segment, 70), (newest, 40), ("identity", 30), (FLUSH_POSITION_NAME, 9)):
        path = f"{DIRECTORY}/{name}"
        overwrite(fs, path, at, bytes([content(fs, path)[at] ^ 8]))
    return fs


def test_a_power_cut_at_any_step_leaves_copies_and_a_second_repair_finishes() -> None:
    before, sound = damaged(), all_files(bound_log())
    probe = FaultyFs(before.crash_clone())
    assert len(repair_log(probe, DIRECTORY, ASIDE, NAMES)[0]) == 4
    assert probe.operations_count > 20
    for step in range(probe.operations_count):
        cut = cut_at(step)
        cut.inner = before.crash_clone()
        with pytest.raises(PowerCutError):
            repair_log(cut, DIRECTORY, ASIDE, NAMES)
        assert isinstance(cut.inner, MemFs)
        fs = cut.inner.crash_clone(step)
        _assert_kept(before, fs)
        repair_log(fs, DIRECTORY, ASIDE, NAMES)
        assert verify(fs).damage == []
        _assert_kept(before, fs)
        kept = all_files(fs)
        # A slot of the flush position is written as the other one, which is as good.
        assert {n: kept[n] for n in sound if n != FLUSH_POSITION_NAME} == {
            n: data for n, data in sound.items() if n != FLUSH_POSITION_NAME
        }
        lines = content(fs, f"{ASIDE}/{REPORT_NAME}").splitlines()
        assert {json.loads(line)["done"] for line in lines}


def _assert_kept(before: MemFs, after: MemFs) -> None:
    """Each byte that changed has its copy."""
    now = all_files(after)
    for name, data in all_files(before).items():
        if now[name] == data:
            continue
        copies = [n for n in after.list_directory(ASIDE) if n.split(".offset-")[0] == name]
        restored = bytearray(now[name])
        for copy in copies:
            kept = content(after, f"{ASIDE}/{copy}")
            at = int(copy.split(".offset-")[1]) if ".offset-" in copy else 0
            restored[at : at + len(kept)] = kept
        assert restored == data, (name, copies)


def damage_at_random(rng: random.Random, fs: MemFs) -> None:
    """Change a bit, a byte or a range of a file, cut it, or remove it."""
    name = rng.choice([n for n in fs.list_directory(DIRECTORY) if n not in ("lock", "format")])
    path = f"{DIRECTORY}/{name}"
    data = content(fs, path)
    room = max(len(data.rstrip(b"\0")), 1)
    at = rng.randrange(room)
    kind = rng.choice(["bit", "byte", "range", "cut", "gone"])
    if kind == "gone":
        fs.remove(path)
        fs.sync_directory(DIRECTORY)
    elif kind == "cut":
        file = fs.open(path, writable=True)
        file.truncate(at)
        file.sync_data()
        file.close()
    else:
        size = 1 if kind != "range" else min(rng.randrange(1, 1500), room - at)
        flip = bytes([data[at] ^ (1 << rng.randrange(8))])
        overwrite(fs, path, at, flip if kind == "bit" else rng.randbytes(size))


@pytest.mark.parametrize("seed", range(200))
def test_after_any_damage_a_repaired_log_starts_and_lost_is_what_was_said(seed: int) -> None:
    rng, fs = random.Random(seed), bound_log()
    whole = open_log(fs.crash_clone())
    messages = {number: bodies_of(whole, number) for number in NAMES}
    for _ in range(rng.choice([1, 1, 2, 3])):
        damage_at_random(rng, fs)
    _, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    refusing = {finding.file for finding in report.findings if finding.refuses_start}
    assert refusing <= {"identity"}  # which metadata belong to the log is for the operator to say
    log = open_log(fs.crash_clone())
    check_costs(report, log)
    for number, bodies in messages.items():
        topic, lost = log.topic(number), unreadable(log, number)
        for ordinal in set(range(topic.first, topic.end)) - lost:
            ((*_, body),) = log.read(log.locate(topic, ordinal, 1, 1))
            assert bytes(body) in bodies
