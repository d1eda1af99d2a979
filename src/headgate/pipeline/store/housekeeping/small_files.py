"""Which files of a table compaction merges.

Only files that are small count: a partition with a thousand full files needs nothing. Where rows
are still appended, files are merged with others of about their size, so a row is rewritten once for
each tier of sizes, however often rows are appended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from headgate.base.units import KIB
from headgate.pipeline.kernels.null_safe_join import joined_rows
from headgate.pipeline.store.delta_log import TableFile, files_of_actions
from headgate.pipeline.store.parquet_files import FILE_BYTES_MAX

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
    open_hours: int = 0
    """So many of the newest hours are left alone: rows are still appended there."""


EVERYTHING: Final = CompactionLimits()


def small_file_groups(delta: DeltaTable, limits: CompactionLimits) -> list[list[TableFile]]:
    """Groups of at least two small files of one partition, each to be merged; the largest first.

    The rows of all files but those in a group are not looked at one by one: a table of a year has
    very many.
    """
    names = list(delta.metadata().partition_columns)
    actions = pa.table(delta.get_add_actions(flatten=True))
    files = files_of_actions(_shared_partitions(actions, names, limits), names)
    if limits.open_hours and "date" in names:
        newest = max((file.hour for file in files_of_actions(_newest(actions), names)), default=0)
        files = [file for file in files if file.hour <= newest - limits.open_hours]
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


def _shared_partitions(actions: pa.Table, names: list[str], limits: CompactionLimits) -> pa.Table:
    """The log's rows of small files that have another one in their partition."""
    small = actions.filter(pc.less(actions["size_bytes"], limits.small_bytes))
    columns = [f"partition.{name}" for name in names]
    counts = small.group_by(columns).aggregate([([], "count_all")])
    counted = joined_rows(small.select(columns), counts, columns)
    return small.filter(pc.greater(counted["count_all"], 1))


def _newest(actions: pa.Table) -> pa.Table:
    """The log's rows of the files of the newest day."""
    if not actions.num_rows:
        return actions
    return actions.filter(pc.equal(actions["partition.date"], pc.max(actions["partition.date"])))


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
    for file in sorted(files, key=lambda file: (file.window_ends_ns or (0, 0), file.path)):
        if pack and total_bytes(pack) + file.size_bytes > bytes_max:
            if len(pack) > 1:
                yield pack
            pack = []
        pack.append(file)
    if len(pack) > 1:
        yield pack
