"""F20: directories that earlier releases left behind open, and formats of later ones are refused.

``directories`` holds what the last release of each format wrote, crashed and closed. A later format
of the log and of the metadata is refused in
``tests/service/test_standalone.py::test_a_later_format_of_each_part``.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import pytest

from headgate.fs import MemFs
from headgate.ledger import LedgerSettings
from headgate.ledger.errors import UnknownFormatError
from tests.unit.ledger.support import (
    DIRECTORY,
    append,
    bodies_of,
    content,
    open_log,
    overwrite,
    path,
)


def recorded(version: int, state: str) -> MemFs:
    """A directory that a release of that format left behind."""
    text = (Path(__file__).parent / "directories" / f"format_{version}.json").read_text()
    fs = MemFs()
    fs.make_directory(DIRECTORY)
    for name, packed in json.loads(text)[state].items():
        file = fs.create(f"{DIRECTORY}/{name}")
        file.write_at(0, [zlib.decompress(base64.b64decode(packed))])
        file.sync_data()
    fs.sync_directory(DIRECTORY)
    return fs


def contents(fs: MemFs) -> dict[str, bytes]:
    """All files of the log."""
    return {name: content(fs, f"{DIRECTORY}/{name}") for name in fs.list_directory(DIRECTORY)}


@pytest.mark.parametrize("state", ["crashed", "closed"])
def test_a_directory_of_the_release_before_is_adopted(
    state: str, caplog: pytest.LogCaptureFixture
) -> None:
    fs = recorded(2, state)
    one = [b"one-%d-" % at + b"x" * 1500 for at in range(10)]
    log = open_log(fs)
    for _ in range(2):
        assert bodies_of(log, 1) == one
        assert bodies_of(log, 2) == [b"two-%d" % at for at in range(6, 10)]
        (cursor,) = log.cursors_of(1)
        assert (cursor.name, cursor.ack_set.mark_delete) == ("s", 2)
        log.close()
        log = open_log(fs)
    (line,) = caplog.messages
    assert line.startswith("/data had format 2 of an older release and has format 3 from now on")


def test_a_torn_tail_of_the_release_before_is_cut() -> None:
    fs = recorded(2, "crashed")
    log = open_log(fs.crash_clone())
    (last,) = [s for s in log._state.segments if s >= log._state.checkpoint_segment]
    end = log._state.segments[last].data_end
    overwrite(fs, path(last), end - 1, b"\xee")
    (cursor,) = open_log(fs).cursors_of(1)
    assert cursor.ack_set.mark_delete == 0


@pytest.mark.parametrize("state", ["crashed", "closed"])
def test_a_recorded_directory_of_format_3_opens(state: str) -> None:
    log = open_log(recorded(3, state))
    assert bodies_of(log, 1) == [b"one-%d-" % at + b"x" * 1500 for at in range(10)]
    assert bodies_of(log, 2) == [b"two-%d" % at for at in range(6, 10)]
    (cursor,) = log.cursors_of(1)
    assert (cursor.name, cursor.properties) == ("s", {"owner": "tests"})
    assert [cursor.ack_set.is_acked(at) for at in range(6)] == [True] * 3 + [False, True, False]


def test_a_recorded_directory_of_format_3_with_holes_opens() -> None:
    settings = LedgerSettings(segment_bytes=128 * 1024, extent_bytes=4096)
    log = open_log(recorded(3, "punched"), topics=[1, 2, 3], settings=settings)
    assert bodies_of(log, 1) == []
    assert [bodies_of(log, number) for number in (2, 3)] == [
        [b"small %d" % at for at in range(first, 120, 40)] for first in (0, 20)
    ]


def test_a_recorded_directory_of_format_3_with_accepted_damage_opens() -> None:
    log = open_log(recorded(3, "accepted"))
    topic = log.topic(1)
    assert (topic.damage, topic.lost, topic.end) == ("", [(1, 2), (3, 4)], 6)
    assert log.read(log.locate(topic, 5, 1, 1))[0][2] == b"six"
    assert bodies_of(log, 2) == [b"other"]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("state", ["crashed", "closed"])
def test_an_adopted_directory_is_used_on(version: int, state: str) -> None:
    fs = recorded(version, state)
    log = open_log(fs)
    before = bodies_of(log, 1)
    append(log, 1, b"of this release")
    again = open_log(fs.crash_clone())
    assert bodies_of(again, 1) == [*before, b"of this release"]
    assert again.topic(1).damage == ""


def test_a_later_format_is_refused_by_name_and_stays_untouched() -> None:
    fs = recorded(3, "closed")
    overwrite(fs, f"{DIRECTORY}/format", 0, b"headgate-log 9\n")
    before = contents(fs)
    with pytest.raises(UnknownFormatError, match="headgate-log 9"):
        open_log(fs)
    assert contents(fs) == {**before, "lock": b""}
