"""Checks the footer of a segment file, block by block."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.ledger.format.records import (
    CRC,
    ENTRY_HEAD_BYTES,
    SEGMENT_HEADER_BYTES,
    crc32c,
)
from headgate.ledger.index.footer import (
    FOOTER_MAGIC,
    FOOTER_ROW,
    FOOTER_TRAILER,
    FOOTER_VERSION,
    TRAILER_BYTES,
)
from headgate.ledger.tools.walk import IndexedEntry


class DamagedBlock(NamedTuple):
    """A damaged part of a footer."""

    offset: int
    size_bytes: int
    what: str


class IndexedRun(NamedTuple):
    """The entries of one topic that a footer lists."""

    topic: int
    first: int
    stop: int


@dataclass(slots=True)
class FooterCheck:
    """What the end of a segment file says about its records."""

    is_found: bool = False
    """The file ends with a footer, sound or damaged."""
    data_end: int | None = None
    """The offset where the records end; None if no sound part of a footer tells it."""
    damage: list[DamagedBlock] = field(default_factory=list)
    runs: list[IndexedRun] = field(default_factory=list)
    index: dict[int, IndexedEntry] = field(default_factory=dict)
    """The listed entries by offset. Lost entries are left out: they have the offset of another."""

    @property
    def is_usable(self) -> bool:
        """Whether a start uses the footer: it ignores one that is damaged anywhere."""
        return self.is_found and not self.damage


def check_footer(data: bytes, segment: int, lost: dict[int, list[tuple[int, int]]]) -> FooterCheck:
    """Check the footer at the end of a segment file. ``lost`` are known lost ordinals by topic."""
    found = FooterCheck()
    at = len(data) - TRAILER_BYTES
    if at < SEGMENT_HEADER_BYTES:
        return found
    trailer = data[at:]
    magic, version, count, owner, data_end, directory_crc = FOOTER_TRAILER.unpack_from(trailer)
    (crc,) = CRC.unpack_from(trailer, FOOTER_TRAILER.size)
    directory_at = at - count * FOOTER_ROW.size
    is_sound = (
        crc == crc32c(trailer[: FOOTER_TRAILER.size]) and magic == FOOTER_MAGIC and owner == segment
    )
    fits = SEGMENT_HEADER_BYTES <= data_end <= directory_at
    signs = [magic == FOOTER_MAGIC, version == FOOTER_VERSION, owner == segment, fits]
    if not is_sound and sum(signs) < len(signs) - 1:
        return found
    found.is_found = True
    if not is_sound:
        found.damage.append(
            DamagedBlock(at, TRAILER_BYTES, "the end of the footer has a wrong checksum")
        )
    elif version != FOOTER_VERSION:
        found.damage.append(DamagedBlock(at, TRAILER_BYTES, f"a footer of version {version}"))
        fits = False
    elif not fits:
        found.damage.append(DamagedBlock(at, TRAILER_BYTES, "the footer does not fit its file"))
    if not fits:
        return found
    directory = data[directory_at:at]
    is_listed = crc32c(directory) == directory_crc
    if is_sound:
        found.data_end = data_end
    elif is_listed and count:
        found.data_end = FOOTER_ROW.unpack_from(directory)[
            3
        ]  # the columns begin where the records end
    if not is_listed:
        what = "the directory of the footer has a wrong checksum"
        found.damage.append(DamagedBlock(directory_at, at - directory_at, what))
        return found
    for row in FOOTER_ROW.iter_unpack(directory):
        _check_run(data, directory_at, row, lost, found)
    if found.damage:
        found.index.clear()
        found.runs.clear()
    return found


def _check_run(
    data: bytes,
    limit: int,
    row: tuple[int, int, int, int, int, int],
    lost: dict[int, list[tuple[int, int]]],
    found: FooterCheck,
) -> None:
    topic, count, first, offset, crc, _ = row
    more = count + 1
    offsets_bytes, sizes_bytes = 4 * count, 8 * more
    size = offsets_bytes + 8 * more + 4 * more + 8 * more + sizes_bytes
    block = data[offset : min(offset + size, limit)]
    if len(block) != size or crc32c(block) != crc:
        what = f"the index of topic number {topic} in the footer has a wrong checksum"
        found.damage.append(DamagedBlock(offset, size, what))
        return
    found.runs.append(IndexedRun(topic, first, first + count))
    offsets, sizes = array("I"), array("q")
    offsets.frombytes(block[:offsets_bytes])
    sizes.frombytes(block[size - sizes_bytes :])
    known = lost.get(topic, [])
    for at, place in enumerate(offsets):
        ordinal = first + at
        if place in found.index or any(low <= ordinal < high for low, high in known):
            continue
        end = place + ENTRY_HEAD_BYTES + sizes[at + 1] - sizes[at]
        found.index[place] = IndexedEntry(topic, ordinal, end)
