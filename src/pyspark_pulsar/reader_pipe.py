"""Frames through the pipes between Spark's worker and the process in which the client reads.

A frame is an object, pickled, and perhaps a record batch in Arrow's format for streams. Both sides
trust each other: they are one program, and one could do all that the other can.
"""

from __future__ import annotations

import os
import pickle
import struct
from typing import Any, Final

import pyarrow as pa

_SIZES: Final = struct.Struct("<QQ")
"""Bytes of the object, and of the record batch: 0 if there is none."""


def write_frame(fd: int, what: Any, batch: pa.RecordBatch | None = None) -> None:
    """Send an object. Blocks. Raises :class:`BrokenPipeError` if nobody reads."""
    data = pickle.dumps(what)
    rows = memoryview(b"" if batch is None else batch.serialize())
    parts = [memoryview(_SIZES.pack(len(data), rows.nbytes) + data), rows]
    while parts:
        sent = os.writev(fd, parts)
        while parts and sent >= parts[0].nbytes:
            sent -= parts.pop(0).nbytes
        if parts:
            parts[0] = parts[0][sent:]


def read_frame(fd: int) -> tuple[Any, pa.Buffer | None]:
    """The next object, and the bytes of its record batch. Blocks.

    Raises:
        EOFError: the other side has ended.
    """
    data_bytes, row_bytes = _SIZES.unpack(_read(fd, _SIZES.size))
    what = pickle.loads(_read(fd, data_bytes))
    return what, _read(fd, row_bytes) if row_bytes else None


def _read(fd: int, size: int) -> pa.Buffer:
    data = pa.allocate_buffer(size)
    left = memoryview(data)
    while left:
        count = os.readv(fd, [left])
        if not count:
            raise EOFError("the other end is closed")
        left = left[count:]
    return data
