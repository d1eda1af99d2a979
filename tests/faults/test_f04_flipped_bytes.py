"""F4: every byte of every file of a log is flipped, one at a time, and every file is lost or cut.

A start refuses with the name of the file, or everything that it shows is right: what is damaged is
named at its topic or at its read. Seeded damage of larger logs is
``tests/sim/test_ledger_damage.py``; the metadata's files are in
``tests/unit/metadata/test_sqlite_store.py``.
"""

from __future__ import annotations

import functools
from collections import Counter

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import HeadgateError
from headgate.fs import MemFs
from headgate.ledger import CommitLog, LedgerSettings
from headgate.ledger.format.identity import Identity
from headgate.ledger.format.records import segment_of_name
from tests.unit.ledger.support import (
    DIRECTORY,
    append,
    commit,
    content,
    open_log,
    overwrite,
    use_old_files,
)

SETTINGS = LedgerSettings(segment_bytes=4096, extent_bytes=512, checkpoint_records=100_000)
STRIDE = 3
"""Of the bytes of segments, one in so many is flipped, of all other files each.
``./dev soak flips`` flips all."""
BODIES = {1: [b"one %d" % at * 9 for at in range(12)], 2: [b"two %d" % at * 9 for at in range(12)]}


KINDS = ["new", "old"]
"""The segments are in new files, or the first of them in files of deleted ones."""


@functools.cache
def lived(kind: str) -> MemFs:
    """A log with sealed segments and footers, a checkpoint, a cursor and records behind it."""
    fs = MemFs()
    log = open_log(fs, topics=(1, 2, 3), settings=SETTINGS)
    if kind == "old":
        use_old_files(log, 3)
    log.identify(Identity("0123456789abcdef" * 2, starts=1, topic_number=2, revision=3))
    for at in range(12):
        for number in BODIES:
            append(log, number, BODIES[number][at])
        log.run_maintenance()
        if at == 8:
            acks = AckSet()
            acks.ack_through(3)
            log.create_cursor(1, "s", acks, {"who": "s"})
            commit(log)
            log.checkpoint()
            log.run_maintenance()
    log._writer.flush_position.sync()
    return fs.crash_clone()


def used_bytes(name: str, kind: str) -> int:
    """The bytes of a file up to the last that is not zero."""
    return len(content(lived(kind), f"{DIRECTORY}/{name}").rstrip(b"\0"))


def opened(fs: MemFs) -> tuple[CommitLog | None, str]:
    """The log, or why a start refuses it."""
    try:
        return open_log(fs, topics=(1, 2, 3), settings=SETTINGS), ""
    except HeadgateError as error:
        return None, str(error)


def judge(fs: MemFs) -> str:
    """Open the log and compare all that it shows; returns what happened."""
    log, refusal = opened(fs)
    if log is None:
        assert any(word in refusal for word in (DIRECTORY, ".log", ".checkpoint"))
        return "refused"
    outcome = "whole"
    for number, bodies in BODIES.items():
        topic = log.topic(number)
        if topic.damage:
            outcome = "damage named at the topic"
            continue
        assert topic.end == len(bodies)
        outcome = read_all(log, number) or outcome
    cursors = {cursor.name: cursor for cursor in log.cursors_of(1)}
    if not log.topic(1).damage and not cursors["s"].damage:
        assert cursors["s"].ack_set.mark_delete == 3
    return outcome


def read_all(log: CommitLog, number: int) -> str:
    """Read what a topic has, an extent at a time; the one that is damaged entry by entry."""
    topic, outcome = log.topic(number), ""
    at = topic.first
    while at < topic.end:
        try:
            found = log.read(log.locate(topic, at, len(BODIES[number]), 1 << 20))
        except HeadgateError:
            outcome = read(log, number, at) or outcome
            at += 1
            continue
        for _, ordinal, body in found:
            assert (ordinal, body) == (at, BODIES[number][at])
            at += 1
    return outcome


def read(log: CommitLog, number: int, at: int) -> str:
    """Read one entry: it is right, or the read says that it is damaged."""
    refusal = ""
    try:
        ((_, ordinal, body),) = log.read(log.locate(log.topic(number), at, 1, 1))
    except HeadgateError as error:
        refusal = str(error)
    if refusal:
        assert f"entry {at} of topic number {number}" in refusal
        return "damage named at the read"
    assert (ordinal, body) == (at, BODIES[number][at])
    return ""


def names(kind: str) -> list[str]:
    """Files with content."""
    return [name for name in lived(kind).list_directory(DIRECTORY) if used_bytes(name, kind)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_flipped_byte_is_refused_named_or_harmless(
    kind: str, flip_stride: int | None
) -> None:
    outcomes = Counter[str]()
    for name in names(kind):
        file = f"{DIRECTORY}/{name}"
        data = content(lived(kind), file)
        used = used_bytes(name, kind)
        of_segments = flip_stride or STRIDE
        for at in range(0, used, 1 if segment_of_name(name) is None else of_segments):
            fs = lived(kind).crash_clone()
            overwrite(fs, file, at, bytes([data[at] ^ 0x40]))
            outcomes[judge(fs)] += 1
    assert outcomes["whole"] > outcomes["refused"]
    assert outcomes.keys() >= {"whole", "damage named at the topic"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", ["none", "nothing in it", "half", "all but a byte"])
def test_every_file_is_lost_or_cut_short(left: str, kind: str) -> None:
    for name in names(kind):
        file, used = f"{DIRECTORY}/{name}", used_bytes(name, kind)
        fs = lived(kind).crash_clone()
        if left == "none":
            fs.remove(file)
            fs.sync_directory(DIRECTORY)
        else:
            opened = fs.open(file, writable=True)
            opened.truncate({"nothing in it": 0, "half": used // 2}.get(left, used - 1))
            opened.sync_data()
        judge(fs)
