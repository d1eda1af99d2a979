"""Segment files whose name is not that of the segment in their header, as after a wrong copy.

A crash leaves no such file: a header is durable before its file gets its name. A start that read
one would take it for empty or torn, and cut what it has off. So it refuses, and `headgate ledger
repair` gives the files their names back.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from headgate.base.errors import CorruptionError
from headgate.fs.api import Fs
from headgate.ledger.format.records import (
    RENAMED_SUFFIX,
    SEGMENT_HEADER_BYTES,
    segment_name,
    segment_of_name,
    segment_stamp,
)
from headgate.ledger.recovery.batch_head import batch_head, read_beginning

_SEGMENT_ID: Final = struct.Struct("<Q")
_SEGMENT_ID_AT: Final = 16


class SegmentFile(NamedTuple):
    """A file of a log that is, or was, named as a segment."""

    name: str
    segment: int
    """The segment whose file it is: by its header, else by its first batch, else by its name."""

    @property
    def right_name(self) -> str:
        """The name that the file should have."""
        return segment_name(self.segment)

    @property
    def is_misnamed(self) -> bool:
        """Whether it has another name."""
        return self.name != self.right_name


def segment_in(data: bytes) -> int | None:
    """The segment whose file begins with ``data``; None if neither the header nor the head of the
    first batch tells it."""
    if len(data) >= SEGMENT_HEADER_BYTES:
        (segment,) = _SEGMENT_ID.unpack_from(data, _SEGMENT_ID_AT)
        if segment_stamp(data, segment) is not None:
            return int(segment)
    head = batch_head(data, SEGMENT_HEADER_BYTES)
    return None if head is None else head.segment


def segment_files(fs: Fs, directory: str, names: Sequence[str]) -> list[SegmentFile]:
    """The segment files among the names of a log's directory. Raises :class:`OSError`."""
    found: list[SegmentFile] = []
    for name in names:
        own = segment_of_name(name.removesuffix(RENAMED_SUFFIX))
        if own is not None:
            segment = segment_in(read_beginning(fs, directory, name))
            found.append(SegmentFile(name, own if segment is None else segment))
    return found


def refuse_misnamed(fs: Fs, directory: str, names: Sequence[str]) -> None:
    """Raise :class:`CorruptionError` if a segment file has the name of another segment."""
    misnamed = [file for file in segment_files(fs, directory, names) if file.is_misnamed]
    if not misnamed:
        return
    file = misnamed[0]
    others = len(misnamed) - 1
    rest = f", and {others} more {'file has' if others == 1 else 'files have'} a wrong name"
    raise CorruptionError(
        f"{directory}/{file.name} is the file of segment {file.segment:016x}, by its header, and "
        f"belongs under the name {file.right_name}{rest if others else ''}. Nothing was changed. "
        "`headgate ledger verify` names all such files, and `headgate ledger repair` gives them "
        "their names back"
    )
