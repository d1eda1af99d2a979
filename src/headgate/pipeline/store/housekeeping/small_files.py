"""Which files of a table compaction merges.

Only files that are small count: a partition with a thousand full files needs nothing. Where rows
are still appended, files are merged with others of about their size, so a row is rewritten once for
each tier of sizes, however often rows are appended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from headgate.base.units import KIB
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.parquet_files import FILE_BYTES_MAX
from headgate.pipeline.tables.columns import MINUTE_NS

SMALL_BYTES: Final = FILE_BYTES_MAX // 2
"""Files of this size stay as they are."""

TIER_BYTES: Final = 256 * KIB
TIER_FACTOR: Final = 8
"""The tiers: files below 256 KiB, 2 MiB, 16 MiB and 128 MiB."""


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    """Which files are merged, and how many at once."""

    files_max: int = 1
    """So many small files of one tier may stay in a partition; with 1, of all tiers together."""
    small_bytes: int = SMALL_BYTES
    """Files of this size stay as they are."""
    bytes_max: int | None = None
    """Bytes to rewrite at most, of which two small files must be less; None: no limit."""
    settled_minutes: int = 0
    """Files with one of so many newest minutes are left alone: the next trigger replaces them."""
    open_hours: int = 0
    """So many of the newest hours are left alone: rows are still appended there."""


EVERYTHING: Final = CompactionLimits()


def small_file_groups(
    live: Collection[TableFile], limits: CompactionLimits
) -> list[list[TableFile]]:
    """Groups of at least two small files of one partition, each to be merged; the largest first.

    ``live``: all files of the table. Of full files only the size is looked at, and of small ones
    only those that have another one in their partition: a table of a year has very many files.
    """
    files = _shared_partitions(live, limits)
    if limits.open_hours and files and "hour" in files[0].partition:
        newest = _newest_hour(live)
        files = [file for file in files if file.hour <= newest - limits.open_hours]
    if limits.settled_minutes:
        settled_ns = _newest_minute_ns(live) - limits.settled_minutes * MINUTE_NS
        files = [f for f in files if f.minutes_ns is None or f.minutes_ns[1] <= settled_ns]
    groups = sorted(_groups(files, limits), key=len, reverse=True)
    if limits.bytes_max is None:
        return groups
    wanted, size_bytes = [], 0
    for group in groups:
        size_bytes += total_bytes(group)
        if size_bytes > limits.bytes_max:
            break
        wanted.append(group)
    return wanted


def total_bytes(files: Iterable[TableFile]) -> int:
    """Bytes of some files together."""
    return sum(file.size_bytes for file in files)


def _shared_partitions(live: Iterable[TableFile], limits: CompactionLimits) -> list[TableFile]:
    """The small files that have another one in their partition."""
    small = [file for file in live if file.size_bytes < limits.small_bytes]
    counts = Counter(tuple(file.partition.items()) for file in small)
    return [file for file in small if counts[tuple(file.partition.items())] > 1]


def _newest_hour(live: Iterable[TableFile]) -> int:
    """The newest hour; few files are of the newest day, so few are parsed."""
    day = max((file.partition["date"] for file in live), default="")
    return max((file.hour for file in live if file.partition["date"] == day), default=0)


def _newest_minute_ns(live: Iterable[TableFile]) -> int:
    return max((file.minutes_ns[1] for file in live if file.minutes_ns is not None), default=0)


def _groups(files: Iterable[TableFile], limits: CompactionLimits) -> Iterator[list[TableFile]]:
    alike: dict[tuple[tuple[tuple[str, str], ...], int], list[TableFile]] = {}
    for file in files:
        tier = 0 if limits.files_max == 1 else _tier(file.size_bytes)
        alike.setdefault((tuple(file.partition.items()), tier), []).append(file)
    bytes_max = min(FILE_BYTES_MAX, limits.bytes_max or FILE_BYTES_MAX)
    for _, candidates in sorted(alike.items()):
        if len(candidates) > limits.files_max:
            yield from _packed(candidates, bytes_max)


def _tier(size_bytes: int) -> int:
    tier, bound = 0, TIER_BYTES
    while size_bytes >= bound:
        tier, bound = tier + 1, bound * TIER_FACTOR
    return tier


def _packed(files: Iterable[TableFile], bytes_max: int) -> Iterator[list[TableFile]]:
    """The files in the order of their times, as many together as make one full file."""
    pack: list[TableFile] = []
    for file in sorted(
        files, key=lambda file: (file.window_ends_ns or file.minutes_ns or (0, 0), file.path)
    ):
        if pack and total_bytes(pack) + file.size_bytes > bytes_max:
            if len(pack) > 1:
                yield pack
            pack = []
        pack.append(file)
    if len(pack) > 1:
        yield pack
