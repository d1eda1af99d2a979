"""Changes of an acknowledgement set, as the log stores them.

Stored form (little endian; the container adds a checksum and a version)::

    changes   u8 reset (0 or 1) | i64 mark delete | u32 runs | u32 partly acknowledged entries
              | runs * (u64 first, u64 last) | partials (headgate.base.partial_acks)
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headgate.base.errors import CorruptionError
from headgate.base.partial_acks import PartialEntry, decode_partials, encode_partials

_HEAD = struct.Struct("<BqII")

RUN_BYTES: Final = 16
"""What a run takes in the stored form."""


@dataclass(frozen=True, slots=True)
class AckChanges:
    """The changes of an :class:`headgate.base.ack_set.AckSet` since they were last taken."""

    reset: bool
    """Whether to clear the set before the rest is applied."""
    mark_delete: int
    """All ordinals up to this one are acknowledged; -1 for none."""
    runs: tuple[tuple[int, int], ...]
    """Newly acknowledged ``(first, last)`` above ``mark_delete``, ascending, disjoint."""
    partials: tuple[PartialEntry, ...] = ()
    """Partly acknowledged entries above ``mark_delete`` and outside ``runs`` that changed, each
    with all of its acknowledged messages; ascending."""

    def to_bytes(self) -> bytes:
        """Encode to the stored form."""
        flat = array("Q")
        for run in self.runs:
            flat.extend(run)
        head = _HEAD.pack(self.reset, self.mark_delete, len(self.runs), len(self.partials))
        return head + flat.tobytes() + encode_partials(self.partials)

    @classmethod
    def from_bytes(cls, data: bytes) -> AckChanges:
        """Decode the stored form. Raises :class:`CorruptionError` if ``data`` is not one."""
        if len(data) < _HEAD.size:
            raise CorruptionError(f"acknowledgement changes are cut short at {len(data)} bytes")
        reset, mark_delete, runs_count, partials_count = _HEAD.unpack_from(data)
        flat = array("Q")
        runs_end = _HEAD.size + 2 * runs_count * flat.itemsize
        if reset > 1 or mark_delete < -1 or len(data) < runs_end:
            raise CorruptionError(
                f"acknowledgement changes of {runs_count} runs above {mark_delete} "
                f"have {len(data)} bytes"
            )
        flat.frombytes(data[_HEAD.size : runs_end])
        runs = tuple(zip(flat[::2], flat[1::2], strict=True))
        partials = decode_partials(data, runs_end, partials_count, mark_delete)
        return cls(reset == 1, mark_delete, runs, partials)


def merged(runs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The same ordinals in the fewest runs, ascending."""
    runs.sort()
    open_first = open_last = -1
    for first, last in runs:
        if open_first >= 0 and first <= open_last + 1:
            open_last = max(open_last, last)
            continue
        if open_first >= 0:
            yield open_first, open_last
        open_first, open_last = first, last
    if open_first >= 0:
        yield open_first, open_last
