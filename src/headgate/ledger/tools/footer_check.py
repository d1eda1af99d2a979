"""Checks the footer of a segment file, block by block."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.base.errors import CorruptionError
from headgate.ledger.format.records import (
    CRC,
    ENTRY_HEAD_BYTES,
    SEGMENT_HEADER_BYTES,
    crc32c,
)
from headgate.ledger.index.columns import Columns
from headgate.ledger.index.footer import (
    END_BYTES,
    FOOTER_MAGIC,
    FOOTER_TRAILER,
    FOOTER_VERSION,
    ROW_WITHOUT_BLOCKS,
    TRAILER_BYTES,
    VERSION_WITHOUT_BLOCKS,
    decode_directory,
    directory_begin,
)
from headgate.ledger.index.index_block import (
    block_bytes,
    columns_bytes,
    decode_block,
    decode_columns,
)
from headgate.ledger.index.stored_run import StoredRun
from headgate.ledger.tools.rebuilt_entries import rebuild_entries
from headgate.ledger.tools.walk import IndexedEntry


class DamagedBlock(NamedTuple):
    """A damaged part of a footer."""

    offset: int
    size_bytes: int
    what: str
    lost: tuple[tuple[int, int], ...] = ()
    """Topic number and ordinal of the entries that it lists and that reads do not find by the
    records. Known only if the footer is usable."""


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
    directory: list[StoredRun] | None = None
    """The runs of a sound directory; None if it is damaged, or of a footer without blocks."""
    damage: list[DamagedBlock] = field(default_factory=list)
    is_usable: bool = False
    """Whether a start takes the entries from the footer, and not from the records. All of it must
    be sound in a segment whose records are replayed. Before the checkpoint, the end and the
    directory of a footer with blocks are enough: a damaged block is rebuilt from the records when
    its entries are needed."""
    index: dict[int, IndexedEntry] = field(default_factory=dict)
    """The entries that a start finds with a usable footer, by offset. Lost entries are left out:
    they have the offset of another."""


def check_footer(
    data: bytes,
    segment: int,
    lost: dict[int, list[tuple[int, int]]],
    *,
    is_replayed: bool = False,
) -> FooterCheck:
    """Check the footer at the end of a segment file. ``lost`` are known lost ordinals by topic.
    ``is_replayed``: a start reads the records of the segment, too."""
    found = FooterCheck()
    at = len(data) - TRAILER_BYTES
    if at < SEGMENT_HEADER_BYTES:
        return found
    trailer = data[at:]
    magic, version, count, owner, data_end, directory_crc = FOOTER_TRAILER.unpack_from(trailer)
    (crc,) = CRC.unpack_from(trailer, FOOTER_TRAILER.size)
    is_known = version in (FOOTER_VERSION, VERSION_WITHOUT_BLOCKS)
    begin = directory_begin(version, count, data[at - END_BYTES : at], at)
    directory_at = at if begin is None else begin
    is_sound = (
        crc == crc32c(trailer[: FOOTER_TRAILER.size]) and magic == FOOTER_MAGIC and owner == segment
    )
    fits = SEGMENT_HEADER_BYTES <= data_end <= directory_at
    signs = [magic == FOOTER_MAGIC, is_known, owner == segment, fits]
    if not is_sound and sum(signs) < len(signs) - 1:
        return found
    if owner != segment and crc == crc32c(trailer[: FOOTER_TRAILER.size]):
        return found  # of another segment, whose file has the name of this one
    found.is_found = True
    if not is_sound:
        found.damage.append(
            DamagedBlock(at, TRAILER_BYTES, "the end of the footer has a wrong checksum")
        )
    elif not is_known:
        found.damage.append(DamagedBlock(at, TRAILER_BYTES, f"a footer of version {version}"))
        fits = False
    elif not fits:
        what = "the footer does not fit its file"
        found.damage.append(DamagedBlock(at - END_BYTES, END_BYTES + TRAILER_BYTES, what))
        if SEGMENT_HEADER_BYTES <= data_end <= at:
            found.data_end = data_end
    if not fits:
        return found
    directory = data[directory_at:at]
    is_listed = crc32c(directory) == directory_crc
    if is_sound:
        found.data_end = data_end
    elif is_listed and count:
        # the first blocks, or columns, begin where the records end
        (found.data_end,) = struct.unpack_from("<Q", directory, 16)
    if not is_listed:
        what = "the directory of the footer has a wrong checksum"
        found.damage.append(DamagedBlock(directory_at, at - directory_at, what))
        return found
    has_blocks = version != VERSION_WITHOUT_BLOCKS
    if has_blocks:
        found.directory = decode_directory(directory, count, segment)
        found.is_usable = is_sound and not is_replayed
        before = data[:directory_at]
        for run in found.directory:
            _check_run(before, run, lost.get(run.topic_number, []), found)
    else:
        for row in ROW_WITHOUT_BLOCKS.iter_unpack(directory):
            _check_run_without_blocks(data, directory_at, row, lost, found)
    found.is_usable |= not found.damage
    if not found.is_usable:
        found.index.clear()
    return found


def _check_run(
    data: bytes, run: StoredRun, lost: list[tuple[int, int]], found: FooterCheck
) -> None:
    topic = run.topic_number
    for block in range(run.blocks):
        at, size = run.place_of(block), block_bytes(run.count_of(block))
        first, stop = run.first_of(block), run.first_of(block) + run.count_of(block)
        try:
            _, columns = decode_block(data[at : at + size], topic, first, stop)
        except CorruptionError:
            what = (
                f"the index of topic number {topic} in the footer, entries {first} to {stop - 1}, "
                "has a wrong checksum"
            )
            if not found.is_usable:
                found.damage.append(DamagedBlock(at, size, what))
                continue
            columns, missing = rebuild_entries(data, run, block)
            new = tuple((topic, o) for o in missing if not _is_in(o, lost))
            found.damage.append(DamagedBlock(at, size, what, new))
            known = [*lost, *((ordinal, ordinal + 1) for ordinal in missing)]
            _list_entries(topic, first, columns, known, found)
        else:
            _list_entries(topic, first, columns, lost, found)


def _check_run_without_blocks(
    data: bytes,
    limit: int,
    row: tuple[int, int, int, int, int, int],
    lost: dict[int, list[tuple[int, int]]],
    found: FooterCheck,
) -> None:
    topic, count, first, offset, crc, _ = row
    size = columns_bytes(count)
    block = data[offset : min(offset + size, limit)]
    if len(block) != size or crc32c(block) != crc:
        what = f"the index of topic number {topic} in the footer has a wrong checksum"
        found.damage.append(DamagedBlock(offset, size, what))
        return
    _list_entries(topic, first, decode_columns(block, 0, count), lost.get(topic, []), found)


def _list_entries(
    topic: int, first: int, columns: Columns, lost: list[tuple[int, int]], found: FooterCheck
) -> None:
    sizes = columns.sizes
    for at, place in enumerate(columns.offsets):
        ordinal = first + at
        if place in found.index or _is_in(ordinal, lost):
            continue
        end = place + ENTRY_HEAD_BYTES + sizes[at + 1] - sizes[at]
        found.index[place] = IndexedEntry(topic, ordinal, end)


def _is_in(ordinal: int, ranges: list[tuple[int, int]]) -> bool:
    return any(low <= ordinal < high for low, high in ranges)
