"""The windows around some hours, read from as few files as possible."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.pipeline.derived.coverage import GAP_HOURS_MAX, windows_around, windows_of
from headgate.pipeline.kernels.coverage_gaps import (
    WINDOW_COLUMNS,
    CoverageGap,
    coverage,
    coverage_gaps,
)
from headgate.pipeline.store.delta_log import TableFile, commit_append, ensure_table, table_files
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.store.table_store import TableStore
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S, bronze

HOUR = T0 // HOUR_NS
WINDOW_S = 60


def append(root: Path, start_s: int, seconds: int, **broker: str) -> None:
    """Telemetry of one boot, as one append; ``start_s`` counts from :data:`T0`."""
    player = Broker(SITUATIONS[:1], start_ns=T0 + start_s * S, **broker)
    messages = [m for _ in range(0, seconds, WINDOW_S) for m in player.window(WINDOW_S)]
    written = write_tables(str(root), "0", [(BRONZE_SAMPLES.name, bronze(messages))])
    commit_append(str(root), BRONZE_SAMPLES, written, None)


def live(root: Path) -> list[TableFile]:
    return table_files(ensure_table(str(root), BRONZE_SAMPLES))


@pytest.fixture
def read_hours(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Hours of the files that were read, counted from :data:`HOUR`."""
    found: list[int] = []
    columns = TableStore.columns

    def noted(
        self: TableStore, table: str, paths: Collection[str], names: Collection[str]
    ) -> Iterator[pa.Table]:
        found.extend(int(path.split("hour=")[1].split("/")[0]) - 10 for path in paths)
        return columns(self, table, paths, tuple(names))

    monkeypatch.setattr(TableStore, "columns", noted)
    return found


def test_without_late_windows_only_near_files_are_read(
    tmp_path: Path, read_hours: list[int]
) -> None:
    for hour in range(5):
        append(tmp_path, 3_600 * hour, 3_600, boot=f"boot-{hour}")
    windows = windows_around(str(tmp_path), live(tmp_path), {HOUR + 4})
    assert sorted(read_hours) == [3, 4]
    assert windows.schema.names == list(WINDOW_COLUMNS)
    assert windows.num_rows == 2 * 60
    read_hours.clear()
    windows_around(str(tmp_path), live(tmp_path), {HOUR + 1, HOUR + 2})
    # What came after an hour may be the end of a gap that began in it.
    assert sorted(read_hours) == [0, 1, 2, 3, 4]


def test_back_to_the_last_full_window_of_every_source(
    tmp_path: Path, read_hours: list[int]
) -> None:
    append(tmp_path, 0, 600)
    append(tmp_path, 3_600, 3_000, source="b2", boot="other")
    append(tmp_path, 4 * 3_600, 600, source="b2", boot="another")
    append(tmp_path, 5 * 3_600, 600, boot="boot-2")
    windows = windows_around(str(tmp_path), live(tmp_path), {HOUR + 5})
    assert sorted(read_hours) == [0, 1, 4, 5]
    wanted = CoverageGap("demo", "b1", T0 + 600 * S, T0 + (5 * 3_600 + WINDOW_S) * S)
    assert coverage(windows, {HOUR + 5}).gaps == (wanted,)


@pytest.fixture(scope="module")
def gap_of_hours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bronze with a gap of hours in the telemetry of the broker b1."""
    root = tmp_path_factory.mktemp("gap")
    append(root, 0, 600)
    append(root, 5 * 3_600, 600, boot="boot-2")
    # Others may have telemetry in the hours in which a broker is silent.
    append(root, 2 * 3_600, 3_600, source="b2")
    return root


@pytest.mark.parametrize("hour", range(6))
def test_every_hour_of_a_gap_finds_it(gap_of_hours: Path, hour: int) -> None:
    around = windows_around(str(gap_of_hours), live(gap_of_hours), {HOUR + hour})
    found = [s for s in coverage(around, {HOUR + hour}).gaps if s.source == "b1"]
    assert [list(gap.hours) for gap in found] == [list(range(HOUR, HOUR + 6))]


def test_separate_runs_of_hours_are_read_separately(tmp_path: Path, read_hours: list[int]) -> None:
    for start_s in (0, 30 * 86_400, 60 * 86_400):
        append(tmp_path, start_s, 120)
    days_apart = {HOUR, HOUR + 60 * 24}
    windows = windows_around(str(tmp_path), live(tmp_path), days_apart)
    assert len(read_hours) == 2
    assert coverage_gaps(windows) == []


def test_each_file_is_read_once_and_none_without_hours(
    tmp_path: Path, read_hours: list[int]
) -> None:
    append(tmp_path, 0, 120)
    root, files = str(tmp_path), live(tmp_path)
    hours = {HOUR, HOUR + 2, HOUR + GAP_HOURS_MAX}
    assert windows_around(root, files, hours).num_rows == 2
    assert read_hours == [0]
    assert windows_around(root, files, set()).num_rows == 0


def test_the_windows_of_files(tmp_path: Path) -> None:
    append(tmp_path, 3_540, 120)
    files = live(tmp_path)
    assert {file.partition["kind"] for file in files} > {BATCH_KIND}
    windows = windows_of(str(tmp_path), files)
    assert sorted(windows["seq"].to_pylist()) == [0, 1]
    assert windows_of(str(tmp_path), files[:0]).num_rows == 0
