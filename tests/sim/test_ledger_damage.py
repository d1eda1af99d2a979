"""Seeded damage anywhere in a log that was in use, checked against a model.

Bits flip, stretches turn into zeros or rubbish, files are cut short or lost: segments, checkpoints
and the file that says how far the log was durable. Then the log is opened. What calls itself sound
must have everything that was promised, or say at the read what is wrong; and what the damage did
not touch must not refuse.
"""

from __future__ import annotations

import random

import pytest

from headgate.base.errors import CorruptionError
from headgate.fs import FaultyFs, MemFs
from headgate.ledger import CommitLog
from headgate.ledger.format.flush_position import FLUSH_POSITION_NAME
from headgate.ledger.format.records import (
    BATCH_RECORD_BYTES,
    ENTRY,
    ENTRY_HEAD_BYTES,
    segment_of_checkpoint,
    segment_of_name,
)
from headgate.ledger.recovery.batch_head import batch_head
from tests.sim.test_ledger_power_cuts import (
    DIRECTORY,
    SETTINGS,
    TOPICS,
    Driver,
    Model,
    PowerCutError,
    acked_entries,
    cut_at,
    run,
)
from tests.unit.ledger.support import check_space


def lived(seed: int, turns: int) -> Driver:
    """A log that was in use until the power went."""
    driver = Driver(FaultyFs(MemFs()), Model(), seed)
    run(driver, turns)
    return driver


def left(driver: Driver, *, flushed: bool = True) -> MemFs:
    """What its disk holds after the power cut."""
    assert isinstance(driver.fs.inner, MemFs)
    if flushed:
        driver.log._writer.flush_position.sync()
    return driver.fs.inner.crash_clone()


def content(fs: MemFs, name: str) -> bytes:
    file = fs.open(f"{DIRECTORY}/{name}")
    return file.read_at(0, file.size())


def overwrite(fs: MemFs, name: str, at: int, data: bytes) -> None:
    file = fs.open(f"{DIRECTORY}/{name}", writable=True)
    file.write_at(at, [data])
    file.sync_data()


def open_log(fs: MemFs | FaultyFs, seed: int = 0) -> CommitLog:
    return CommitLog.open(
        fs,
        DIRECTORY,
        topic_numbers=TOPICS,
        entropy=random.Random(seed).randbytes,
        settings=SETTINGS,
    )


def used_bytes(fs: MemFs, name: str) -> int:
    return len(content(fs, name).rstrip(b"\0"))


def check(log: CommitLog, model: Model, confirmed: frozenset[str]) -> None:
    """What calls itself sound has what was promised, or a read of it says what is wrong."""
    for number, topic in model.topics.items():
        found = log.topic(number)
        if found.damage:
            continue
        assert topic.durable <= found.end <= len(topic.bodies)
        assert found.first <= max(topic.first, topic.first_durable)
        at = found.first
        while at < found.end:
            try:
                ((_, ordinal, body),) = log.read(log.locate(found, at, 1, 1))
            except CorruptionError as error:
                said = str(error)
                assert f"entry {at} of topic number {number}" in said
            else:
                assert (ordinal, body) == (at, topic.bodies[at])
                assert found.position(at) == topic.positions[at]
                assert (found.received_ms(at), found.published_ms(at)) == topic.times[at]
            at += 1
    check_cursors(log, model, confirmed)


def check_cursors(log: CommitLog, model: Model, confirmed: frozenset[str]) -> None:
    number = TOPICS[0]
    if log.topic(number).damage:
        return
    found = {cursor.name: cursor for cursor in log.cursors_of(number)}
    for name, cursor in found.items():
        if cursor.damage:
            continue
        assert name not in model.gone_for_sure
        known = model.cursors.get(name)
        if known is not None:
            shown = acked_entries(cursor.ack_set)
            assert shown in known.states[known.durable_from :]
    assert {name for name in model.cursors if name in confirmed} <= set(found)


def spoil(fs: MemFs, name: str, rng: random.Random) -> str:
    """Damage a file; returns how."""
    used = max(used_bytes(fs, name), 1)
    at = rng.randrange(used)
    how = rng.choice(("bit", "bit", "bits", "zeros", "rubbish", "cut"))
    if how == "bit":
        flip(fs, name, at, rng.randrange(8))
    elif how == "bits":
        for _ in range(rng.randrange(2, 9)):
            flip(fs, name, rng.randrange(used), rng.randrange(8))
    elif how == "cut":
        file = fs.open(f"{DIRECTORY}/{name}", writable=True)
        file.truncate(at)
        file.sync_data()
    else:
        size = rng.choice((4, 60, 512))
        overwrite(fs, name, at, bytes(size) if how == "zeros" else rng.randbytes(size))
    return f"{how} at {at} of {name}"


def flip(fs: MemFs, name: str, at: int, bit: int) -> None:
    overwrite(fs, name, at, bytes([content(fs, name)[at] ^ 1 << bit]))


def is_log_file(name: str) -> bool:
    return (
        segment_of_name(name) is not None
        or segment_of_checkpoint(name) is not None
        or name == FLUSH_POSITION_NAME
    )


def use_on(log: CommitLog) -> None:
    """It takes entries, and keeps them."""
    for number in TOPICS:
        log.stage_entry(log.topic(number), 1, 1 << 40, 0, b"later")
    batch = log.seal_batch()
    assert batch is not None
    log.commit(batch)
    log.run_maintenance()
    check_space(log)


@pytest.mark.parametrize("seed", range(8))
def test_what_calls_itself_sound_is_sound(seed: int) -> None:
    driver = lived(seed, 34 + seed)
    rng = random.Random(f"damage {seed}")
    whole = left(driver)
    names = [name for name in whole.list_directory(DIRECTORY) if is_log_file(name)]
    for _ in range(150):
        fs = whole.crash_clone()
        spoiled = [rng.choice(names) for _ in range(rng.choice((1, 1, 2, 4)))]
        if FLUSH_POSITION_NAME in spoiled:
            # With the record of the end gone, too, a damaged last batch is a torn one.
            spoiled = [FLUSH_POSITION_NAME]
        done = [spoil(fs, name, rng) for name in spoiled]
        try:
            log = open_log(fs)
        except CorruptionError as error:
            assert "is empty" in str(error), done  # noqa: PT017
            fs.remove(f"{DIRECTORY}/{FLUSH_POSITION_NAME}")
            open_log(fs)
            continue
        check(log, driver.model, driver.confirmed)
        damaged = {n: log.topic(n).damage for n in TOPICS}
        cursors = {c.name: c.damage for c in log.cursors()}
        again = open_log(fs.crash_clone(), 1)
        assert {n: again.topic(n).damage for n in TOPICS} == damaged
        assert {c.name: c.damage for c in again.cursors()} == cursors
        check(again, driver.model, driver.confirmed)
        use_on(again)


@pytest.mark.parametrize("seed", range(3))
def test_one_bit_harms_one_message_at_most(seed: int) -> None:
    driver = lived(seed, 40)
    rng = random.Random(f"bit {seed}")
    whole = left(driver)
    names = [name for name in whole.list_directory(DIRECTORY) if is_log_file(name)]
    bodies = bodies_in(whole, names)
    for _ in range(400):
        fs = whole.crash_clone()
        name = rng.choice(names)
        at = rng.randrange(used_bytes(fs, name))
        flip(fs, name, at, rng.randrange(8))
        log = open_log(fs)
        check(log, driver.model, driver.confirmed)
        hit = {
            topic for place, first, stop, topic in bodies if place == name and first <= at < stop
        }
        assert {n for n in TOPICS if log.topic(n).damage} <= hit
        assert not [cursor for cursor in log.cursors() if cursor.damage]


def bodies_in(fs: MemFs, names: list[str]) -> list[tuple[str, int, int, int]]:
    """Where each entry lies: file, from where to where, and whose it is."""
    found: list[tuple[str, int, int, int]] = []
    for name in names:
        if segment_of_name(name) is None:
            continue
        data = content(fs, name)
        at = 64
        while (head := batch_head(data, at)) is not None:
            stop = at + head.size_bytes
            at += BATCH_RECORD_BYTES
            while at < stop:
                size = int.from_bytes(data[at + 4 : at + 8], "little") + 16
                if data[at + 8] == 3:
                    topic = ENTRY.unpack_from(data, at)[6]
                    found.append((name, at, at + max(size, ENTRY_HEAD_BYTES), topic))
                at += size
    return found


@pytest.mark.parametrize("seed", range(3))
def test_companion_files_may_all_be_lost_but_the_checkpoint_tells_of_subscriptions(
    seed: int,
) -> None:
    driver = lived(seed, 40)
    whole = left(driver)
    names = [name for name in whole.list_directory(DIRECTORY) if is_log_file(name)]
    others = [name for name in names if segment_of_name(name) is None]
    for lost in [[name] for name in others] + [others[:-1], others]:
        fs = whole.crash_clone()
        for name in lost:
            fs.remove(f"{DIRECTORY}/{name}")
        log = open_log(fs)
        check(log, driver.model, driver.confirmed)
        checkpoints = [name for name in others if segment_of_checkpoint(name) is not None]
        if not set(checkpoints) <= set(lost):
            assert not any(log.topic(number).damage for number in TOPICS)


@pytest.mark.parametrize("seed", range(4))
def test_a_power_cut_while_a_damaged_log_is_opened_hides_nothing(seed: int) -> None:
    driver = lived(seed, 36)
    rng = random.Random(f"twice {seed}")
    whole = left(driver)
    names = [name for name in whole.list_directory(DIRECTORY) if segment_of_name(name) is not None]
    for _ in range(6):
        fs = whole.crash_clone()
        spoil(fs, rng.choice(names), rng)
        probe = FaultyFs(fs.crash_clone())
        try:
            first = open_log(probe)
        except CorruptionError:
            continue
        damaged = {number for number in TOPICS if first.topic(number).damage}
        for step in range(probe.operations_count):
            again = cut_at(step)
            again.inner = fs.crash_clone()
            with pytest.raises(PowerCutError):
                open_log(again)
            assert isinstance(again.inner, MemFs)
            log = open_log(again.inner.crash_clone(step), step)
            check(log, driver.model, driver.confirmed)
            assert damaged <= {number for number in TOPICS if log.topic(number).damage}
