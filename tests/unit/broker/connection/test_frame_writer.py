"""Frames of one turn are written together; a peer that reads nothing is noticed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.broker.connection.bounds import OUT_BYTES_MAX, UNREAD_BYTES_MAX
from headgate.broker.connection.frame_writer import FrameWriter


class Rig:
    """A writer whose turns end when the test says so."""

    def __init__(self) -> None:
        self.at_end: list[Callable[[], None]] = []
        self.written: list[bytes] = []
        self.flushes = self.overflows = 0
        self.writer = FrameWriter(self.at_end.append, self.flushed, self.overflowed)
        transport: Any = self
        self.writer.open(transport)

    def writelines(self, parts: list[bytes]) -> None:
        self.written += parts

    def flushed(self) -> None:
        self.flushes += 1

    def overflowed(self) -> None:
        self.overflows += 1

    def end_turn(self) -> None:
        actions, self.at_end[:] = list(self.at_end), []
        for action in actions:
            action()


def test_the_frames_of_a_turn_are_written_once_and_in_order() -> None:
    rig = Rig()
    rig.writer.write(b"a")
    rig.writer.write(b"b")
    assert (rig.written, len(rig.at_end)) == ([], 1)
    rig.end_turn()
    assert (rig.written, rig.flushes) == ([b"a", b"b"], 1)
    rig.writer.write(b"c")
    rig.end_turn()
    assert rig.written == [b"a", b"b", b"c"]


def test_entries_and_frames_keep_their_order_and_the_bytes_count_anew_each_turn() -> None:
    rig = Rig()
    assert rig.writer.write_entry(b"head", b"body")
    rig.writer.write(b"receipt")
    rig.end_turn()
    assert rig.written == [b"head", b"body", b"receipt"]
    assert rig.writer.write_entry(b"head", b"x" * OUT_BYTES_MAX)


def test_entries_beyond_the_bound_of_a_turn_end_delivery_in_that_turn() -> None:
    rig = Rig()
    assert rig.writer.write_entry(b"head", b"x" * OUT_BYTES_MAX)
    assert not rig.writer.write_entry(b"head", b"y")
    rig.end_turn()
    assert len(rig.written) == 4, "what was written before the answer is sent"


def test_a_closed_writer_drops_entries_and_does_not_end_delivery() -> None:
    rig = Rig()
    rig.writer.close()
    assert rig.writer.write_entry(b"head", b"x" * (OUT_BYTES_MAX + 1))
    assert not rig.writer.gathered
    assert not rig.at_end


def test_nothing_is_written_to_a_connection_that_is_over() -> None:
    rig = Rig()
    rig.writer.write(b"a")
    rig.writer.is_open = False
    rig.writer.write(b"b")
    rig.end_turn()
    assert (rig.written, rig.flushes) == ([], 0)


def test_a_peer_that_leaves_too_much_unread_is_reported_until_it_reads() -> None:
    rig = Rig()
    rig.writer.pause()
    rig.writer.write(b"x" * UNREAD_BYTES_MAX)
    assert rig.overflows == 0
    rig.writer.write(b"x")
    assert rig.overflows == 1
    rig.writer.resume()
    rig.writer.write(b"x" * UNREAD_BYTES_MAX)
    assert rig.overflows == 1
