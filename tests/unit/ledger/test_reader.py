"""Reads of damaged, missing and deleted places."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError, StorageError
from headgate.fs import MemFs
from headgate.ledger.format.records import ENTRY_HEAD_BYTES
from tests.unit.ledger.support import append, content, open_log, overwrite, path


def test_every_flipped_byte_of_an_entry_is_noticed_and_contained() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"before")
    topic = append(log, 2, b"the one")
    append(log, 1, b"after")
    plan = log.locate(topic, 0, 1, 1)
    good = content(fs, path())
    for at in range(plan.offset, plan.offset + ENTRY_HEAD_BYTES + 7):
        overwrite(fs, path(), at, bytes([good[at] ^ 4]))
        with pytest.raises(CorruptionError, match="entry 0 of topic number 2, 0000000000000001"):
            log.read(plan)
        other = log.locate(log.topic(1), 0, 9, 999)
        assert [body for _, _, body in log.read(other)] == [b"before", b"after"]
        other.wanted_topics.add(2)
        assert all(number == 1 for number, _, _ in log.read(other))
        overwrite(fs, path(), at, good[at : at + 1])
    assert log.read(plan) == [(2, 0, b"the one")]


def test_a_cut_file_is_damage() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, b"a" * 100)
    plan = log.locate(topic, 0, 1, 1)
    for size in (plan.offset - 10, plan.offset + 10, plan.offset + 100):
        fs.open(path(), writable=True).truncate(size)
        with pytest.raises(CorruptionError, match="cut short"):
            log.read(plan)


def test_another_record_in_its_place_is_damage() -> None:
    log = open_log(MemFs())
    topic = append(log, 1, b"a", b"b")
    plan = log.locate(topic, 0, 1, 1)
    plan.offsets[0] = plan.offset = log.locate(topic, 1, 1, 1).offset
    with pytest.raises(CorruptionError, match="another record"):
        log.read(plan)


def test_a_missing_file_is_a_storage_error() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, b"a")
    plan = log.locate(topic, 0, 1, 1)
    fs.remove(path())
    with pytest.raises(StorageError, match=r"reading 0000000000000001\.log"):
        log.read(plan)


def test_many_segments_need_few_open_files() -> None:
    log = open_log(MemFs())
    topic = append(log, 1, *[b"%d" % at * 3000 for at in range(90)])
    for _ in range(2):
        for at in range(90):
            log.read(log.locate(topic, at, 1, 1))
    assert len(log._reader._files) <= 64
    log._reader.forget(1)
    log._reader.close()
    assert log.read(log.locate(topic, 0, 1, 1))[0][1] == 0
