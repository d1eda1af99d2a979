"""Frames of one turn are written together; a peer that reads nothing is noticed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate.base.errors import InvariantError
from headgate.broker.connection.bounds import OUT_BYTES_MAX, UNREAD_BYTES_MAX
from headgate.broker.connection.frame_writer import PART_BYTES, FrameWriter


class Rig:
    """A writer whose turns end when the test says so."""

    def __init__(self) -> None:
        self.at_end: list[Callable[[], None]] = []
        self.written: list[bytes] = []
        self.flushes = self.overflows = 0
        self.kept: list[int] = []
        self.unread_bytes_max = UNREAD_BYTES_MAX
        self.error: Exception | None = None
        self.is_aborted = False
        self.writer = FrameWriter(
            self.at_end.append,
            self.flushed,
            self.overflowed,
            self.kept.append,
            lambda: self.unread_bytes_max,
        )
        transport: Any = self
        self.writer.open(transport)

    def write(self, data: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.written.append(bytes(data))

    def abort(self) -> None:
        self.is_aborted = True

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
    assert (rig.written, rig.flushes) == ([b"ab"], 1)
    rig.writer.write(b"c")
    rig.end_turn()
    assert rig.written == [b"ab", b"c"]


def test_entries_and_frames_keep_their_order_and_the_bytes_count_anew_each_turn() -> None:
    rig = Rig()
    assert rig.writer.write_entry(b"head", b"body")
    rig.writer.write(b"receipt")
    rig.end_turn()
    assert rig.written == [b"headbodyreceipt"]
    assert rig.writer.write_entry(b"head", b"x" * OUT_BYTES_MAX)


def test_entries_beyond_the_bound_of_a_turn_end_delivery_in_that_turn() -> None:
    rig = Rig()
    assert rig.writer.write_entry(b"head", b"x" * OUT_BYTES_MAX)
    assert not rig.writer.write_entry(b"head", b"y")
    rig.end_turn()
    assert b"".join(rig.written).endswith(b"heady"), "what was written before the answer is sent"


def test_small_parts_are_joined_and_large_ones_are_not_copied() -> None:
    rig = Rig()
    body = b"x" * (4 * PART_BYTES)
    rig.writer.write_entry(b"head", body)
    rig.end_turn()
    assert rig.written == [b"head", body]
    assert rig.written[1] is body
    for _ in range(1_000):
        rig.writer.write_entry(b"head", b"small")
    rig.end_turn()
    assert rig.written[2:] == [b"headsmall" * 1_000], "not 150 bytes beside each of 9"


def test_what_a_blocked_peer_is_written_is_kept_in_one_piece_until_it_reads() -> None:
    rig = Rig()
    rig.writer.pause()
    for _ in range(3):
        rig.writer.write(b"pong")
        rig.end_turn()
    assert (rig.written, rig.kept, rig.writer.kept_bytes) == ([], [4, 4, 4], 12)
    rig.writer.resume()
    assert (rig.written, rig.writer.kept_bytes) == ([b"pongpongpong"], 0)
    rig.writer.write(b"pong")
    rig.end_turn()
    assert rig.written == [b"pongpongpong", b"pong"]


def test_before_a_connection_ends_the_transport_gets_everything_in_order() -> None:
    rig = Rig()
    rig.writer.pause()
    rig.writer.write(b"a")
    rig.end_turn()
    rig.writer.write(b"b")
    rig.writer.finish()
    assert rig.written == [b"ab"]
    rig.writer.write(b"c")
    rig.end_turn()
    rig.writer.close()
    assert (rig.writer.kept_bytes, rig.written) == (0, [b"ab"])


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


def test_less_may_be_unread_while_there_is_no_room() -> None:
    rig = Rig()
    rig.writer.pause()
    rig.writer.write(b"x")
    assert not rig.writer.has_much_unread
    rig.unread_bytes_max = 0
    assert rig.writer.has_much_unread
    rig.writer.write(b"x")
    assert rig.overflows == 1


def test_what_cannot_be_written_ends_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    rig.error = RuntimeError("nobody expected this")
    rig.writer.write(b"a")
    rig.end_turn()
    assert rig.is_aborted
    assert "writing to a client failed with an internal error" in caplog.text
    assert caplog.records[0].exc_info is not None


def test_a_broken_invariant_is_not_caught() -> None:
    rig = Rig()
    rig.error = InvariantError("as planned")
    rig.writer.write(b"a")
    with pytest.raises(InvariantError):
        rig.end_turn()
