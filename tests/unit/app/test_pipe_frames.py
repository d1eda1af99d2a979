"""Frames through pipes."""

from __future__ import annotations

import os
import threading

import pytest

from headgate.app.pipe_frames import read_frame, write_frame


def test_frames_come_as_they_were_sent() -> None:
    reads, writes = os.pipe()
    sent = [b"one", b"x" * 100_000]

    def send() -> None:
        for data in sent:
            write_frame(writes, data)
        os.close(writes)

    thread = threading.Thread(target=send)
    thread.start()
    assert [read_frame(reads) for _ in range(3)] == [b"one", b"x" * 100_000, b""]
    thread.join()
    os.close(reads)


@pytest.mark.parametrize("sent", [b"\0", b"\0\0\0", b"\2\0\0\0a", b"\xff\xff\xff\xffa"])
def test_an_end_amid_a_frame_is_an_error(sent: bytes) -> None:
    reads, writes = os.pipe()
    os.write(writes, sent)
    os.close(writes)
    with pytest.raises(EOFError, match="the other end is closed"):
        read_frame(reads)
    os.close(reads)


def test_a_frame_to_nobody_is_refused() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with pytest.raises(BrokenPipeError):
        write_frame(writes, b"one")
    os.close(writes)
