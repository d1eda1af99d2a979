"""Which files are merged: small ones of one partition and of about one size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deltalake import DeltaTable

from headgate.base.units import KIB, MIB
from headgate.pipeline.store.delta_log import TableFile, commit_append, table_files
from headgate.pipeline.store.housekeeping.small_files import (
    EVERYTHING,
    SMALL_BYTES,
    CompactionLimits,
    small_file_groups,
    total_bytes,
)
from headgate.pipeline.store.parquet_files import FILE_BYTES_MAX, FileAdded
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from tests.unit.pipeline.store.test_delta_log import HOUR

TIERED = CompactionLimits(files_max=8)


def table_with(root: Path, sizes: Sequence[tuple[int, int]]) -> list[TableFile]:
    """``intervals`` with a file for each (hour of the day, bytes), of which only the log tells."""
    files = [
        FileAdded(
            INTERVALS.name, f"date=2025-11-21/hour={hour}/kind=topic/part-{number}.parquet", size,
            (("date", "2025-11-21"), ("hour", str(hour)), ("kind", "topic")), 1, 0,
            '{"numRecords": 1}',
        )
        for number, (hour, size) in enumerate(sizes)
    ]  # fmt: skip
    commit_append(str(root), INTERVALS, files, None)
    return table_files(DeltaTable(root / INTERVALS.name))


def found(
    root: Path, sizes: Sequence[tuple[int, int]], limits: CompactionLimits = EVERYTHING
) -> list[list[tuple[int, int]]]:
    groups: list[list[TableFile]] = small_file_groups(table_with(root, sizes), limits)
    return [[(file.hour - HOUR + 10, file.size_bytes) for file in group] for group in groups]


def test_full_files_are_never_read_again(tmp_path: Path) -> None:
    full = [(10, SMALL_BYTES)] * 100
    assert found(tmp_path, [*full, (10, 5)]) == []
    assert found(tmp_path / "tiered", [*full, *[(10, 5)] * 8], TIERED) == []


def test_small_files_of_one_partition_are_merged(tmp_path: Path) -> None:
    groups = found(tmp_path, [(9, 1), (10, 2), (10, 3), (10, 4), (11, 5), (11, 6)])
    assert groups == [[(10, 2), (10, 3), (10, 4)], [(11, 5), (11, 6)]]


def test_a_group_fills_one_file(tmp_path: Path) -> None:
    third = FILE_BYTES_MAX // 3
    groups = found(tmp_path, [(10, third)] * 7)
    assert [len(group) for group in groups] == [3, 3]
    assert all(sum(size for _, size in group) <= FILE_BYTES_MAX for group in groups)


def test_files_are_merged_with_others_of_their_size(tmp_path: Path) -> None:
    nine, large = [(10, KIB)] * 9, [(10, MIB)] * 8
    assert found(tmp_path, [*nine[1:], *large], TIERED) == []
    assert found(tmp_path / "crowded", [*nine, *large], TIERED) == [nine]


def test_the_work_grows_with_what_is_appended() -> None:
    """However often rows are appended, each is rewritten a few times, and few files stay."""
    appended = rewritten = 0
    sizes: dict[str, int] = {}
    for number in range(800):
        sizes[f"{number:05d}"] = 10 * KIB
        appended += 10 * KIB
        for group in small_file_groups(
            [TableFile(path, size, {"run_id": "a"}, 1, None) for path, size in sizes.items()],
            TIERED,
        ):
            rewritten += total_bytes(group)
            for file in group:
                del sizes[file.path]
            sizes[f"{number:05d}-merged"] = total_bytes(group)
        assert len(sizes) <= 4 * TIERED.files_max
    assert rewritten <= 5 * appended


def test_a_bound_on_bytes_leaves_the_rest(tmp_path: Path) -> None:
    sizes = [(hour, MIB) for hour in (10, 11, 12) for _ in range(2)]
    bounded = CompactionLimits(bytes_max=4 * MIB)
    assert [group[0][0] for group in found(tmp_path, sizes, bounded)] == [10, 11]


def test_open_hours_are_left_alone(tmp_path: Path) -> None:
    sizes = [(hour, 1) for hour in (8, 9, 10, 11) for _ in range(2)]
    closed = CompactionLimits(open_hours=2)
    assert [group[0][0] for group in found(tmp_path, sizes, closed)] == [8, 9]
    run = FileAdded(POLICY_BACKTEST.name, "run_id=a/1", 1, (("run_id", "a"),), 1, 0, "{}")
    other = FileAdded(POLICY_BACKTEST.name, "run_id=a/2", 1, (("run_id", "a"),), 1, 0, "{}")
    commit_append(str(tmp_path), POLICY_BACKTEST, [run, other], None)
    groups = small_file_groups(table_files(DeltaTable(tmp_path / POLICY_BACKTEST.name)), closed)
    assert [[file.path for file in group] for group in groups] == [["run_id=a/1", "run_id=a/2"]]


def test_a_table_without_files_needs_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, [(10, 1)]) == []
    assert small_file_groups([], CompactionLimits(open_hours=2, settled_minutes=8)) == []


def test_the_newest_minutes_are_left_alone() -> None:
    """The next trigger replaces their files."""
    day = {"date": "2025-11-21", "hour": "10"}
    start_ns = HOUR * HOUR_NS
    files = [
        TableFile(f"{m}", 1, day, 1, None, (start_ns + m * MINUTE_NS, start_ns + m * MINUTE_NS))
        for m in range(30)
    ]
    (group,) = small_file_groups(files, CompactionLimits(files_max=8, settled_minutes=8))
    assert [int(file.path) for file in group] == list(range(22))
