from __future__ import annotations

import os
import threading

import pyarrow as pa
import pytest

from pyspark_pulsar.reader_pipe import read_frame, write_frame

BATCH = pa.record_batch({"value": [b"x" * 100_000, b"", None]})


def test_objects_and_rows_go_through_a_pipe() -> None:
    """Also such that are larger than the pipe."""
    reads, writes = os.pipe()

    def send() -> None:
        write_frame(writes, ("a", 1))
        write_frame(writes, None, BATCH)
        os.close(writes)

    sender = threading.Thread(target=send)
    sender.start()
    assert read_frame(reads) == (("a", 1), None)
    what, rows = read_frame(reads)
    assert what is None
    assert pa.ipc.read_record_batch(rows, BATCH.schema) == BATCH
    with pytest.raises(EOFError):
        read_frame(reads)
    sender.join(10)
    os.close(reads)


def test_the_end_amid_a_frame_is_an_error() -> None:
    reads, writes = os.pipe()
    write_frame(writes, "a")
    whole = os.read(reads, 1_000)
    os.write(writes, whole[:-1])
    os.close(writes)
    with pytest.raises(EOFError):
        read_frame(reads)
    os.close(reads)
    reads, writes = os.pipe()
    os.close(reads)
    with pytest.raises(BrokenPipeError):
        write_frame(writes, "a")
    os.close(writes)
