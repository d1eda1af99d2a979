"""What footers tell, and that none of them stays in memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.kernels.file_checks import FOOTER_KEY
from headgate.pipeline.store.delta_log import commit_append, ensure_table, table_files
from headgate.pipeline.store.footers import column_max, file_checks
from headgate.pipeline.store.housekeeping.compact import compact_table
from headgate.pipeline.store.largest_values import largest_by
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.store.table_store import TableStore, store_of
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES
from tests.unit.pipeline.play import bronze, play


def test_results_of_each_file_and_none_of_an_earlier_release(tmp_path: Path) -> None:
    root, rows = str(tmp_path), bronze(play(60, 10))
    files = write_tables(root, "0", [(BRONZE_SAMPLES.name, rows)])
    older = tmp_path / BRONZE_SAMPLES.name / "older.parquet"
    pq.write_table(rows, older)
    found = file_checks(
        store_of(root), BRONZE_SAMPLES.name, [older.name, *(file.path for file in files)]
    )
    assert found[0] is None
    assert [checks.rows for checks in found[1:] if checks] == [file.rows for file in files]


def test_merged_files_have_the_results_of_all_their_rows(tmp_path: Path) -> None:
    root = str(tmp_path)
    for _ in range(2):
        rows = bronze(play(60, 10))
        files = write_tables(root, "0", [(BRONZE_SAMPLES.name, rows)])
        commit_append(root, BRONZE_SAMPLES, files, None)
    assert compact_table(root, BRONZE_SAMPLES.name).replaced
    paths = [file.path for file in table_files(ensure_table(root, BRONZE_SAMPLES))]
    found = file_checks(store_of(root), BRONZE_SAMPLES.name, paths)
    assert sum(checks.rows for checks in found if checks) == 2 * rows.num_rows


def test_results_are_a_small_part_of_a_small_file(tmp_path: Path) -> None:
    """A window of a few seconds makes a file for each kind."""
    files = write_tables(str(tmp_path), "0", [(BRONZE_SAMPLES.name, bronze(play(10, 10)))])
    for file in files:
        footer = pq.read_metadata(tmp_path / BRONZE_SAMPLES.name / file.path).metadata
        assert len(footer[FOOTER_KEY]) < file.size_bytes / 40


Values = list[list[int | None]]


def written(folder: Path, files: Values, group_rows: int = 2, **how: Any) -> list[str]:
    """A file for each list of values, in groups of a few rows."""
    (folder / "t").mkdir()
    for number, values in enumerate(files):
        rows = pa.table({"other": [0] * len(values), "since_ns": pa.array(values, pa.int64())})
        pq.write_table(rows, folder / "t" / f"{number}", row_group_size=group_rows, **how)
    return [f"{number}" for number in range(len(files))]


NUMBERS = st.integers(-(2**63), 2**63 - 1)


@given(files=st.lists(st.lists(NUMBERS, min_size=1, max_size=7), max_size=4))
def test_the_largest_value_is_that_of_all_rows(
    tmp_path_factory: pytest.TempPathFactory, files: Values
) -> None:
    folder = tmp_path_factory.mktemp("footers")
    paths = written(folder, files)
    found = column_max(store_of(str(folder)), "t", paths, "since_ns")
    assert found == max((value for values in files for value in values), default=None)


@pytest.mark.parametrize(
    ("files", "column", "how"),
    [
        ([[7], [1, 2, None, None]], "since_ns", {}),
        ([[7], []], "since_ns", {}),
        ([[7]], "since_ns", {"write_statistics": False}),
        ([[7]], "later", {}),
    ],
    ids=["no value in a group", "no rows", "no statistics", "no such column"],
)
def test_what_a_footer_does_not_tell_is_not_known(
    tmp_path: Path, files: Values, column: str, how: dict[str, Any]
) -> None:
    paths = written(tmp_path, files, **how)
    assert column_max(store_of(str(tmp_path)), "t", paths, column) is None


READERS: list[Callable[[TableStore, list[str]], object]] = [
    lambda store, paths: column_max(store, BRONZE_SAMPLES.name, paths, "counting_since_ns"),
    lambda store, paths: file_checks(store, BRONZE_SAMPLES.name, paths),
    lambda store, paths: list(store.columns(BRONZE_SAMPLES.name, paths, ["source"])),
    lambda store, paths: [
        largest_by(store, BRONZE_SAMPLES.name, path, "cluster", "window_end_ns") for path in paths
    ],
]


@pytest.fixture
def _uncollected() -> Iterator[None]:
    """Python's garbage collector does not run by itself."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def footers_in_memory() -> int:
    return sum(type(each) is pq.FileMetaData for each in gc.get_objects())


@pytest.mark.usefixtures("_uncollected")
@pytest.mark.parametrize("read", READERS, ids=["column_max", "checks", "columns", "largest_by"])
def test_no_footer_outlives_its_reading(
    tmp_path: Path, read: Callable[[TableStore, list[str]], object]
) -> None:
    """A trigger reads those of all files near it. They would stay until the garbage is collected,
    some 200 kB for each row group."""
    files = write_tables(str(tmp_path), "0", [(BRONZE_SAMPLES.name, bronze(play(60, 10)))])
    gc.collect()
    before = footers_in_memory()
    sampled = [file.path for file in files if dict(file.partition)["kind"] != BATCH_KIND]
    assert read(store_of(str(tmp_path)), sampled)
    assert footers_in_memory() == before


@pytest.mark.usefixtures("_uncollected")
def test_no_footer_outlives_its_writing(tmp_path: Path) -> None:
    rows = bronze(play(60, 10))
    before = footers_in_memory()
    assert len(write_tables(str(tmp_path), "0", [(BRONZE_SAMPLES.name, rows)])) == 4
    assert footers_in_memory() == before


@pytest.mark.usefixtures("_uncollected")
def test_one_footer_is_in_memory_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = written(tmp_path, [[value] for value in range(20)])
    before, most = footers_in_memory(), 0
    read = pq.read_metadata

    def counted(*given: Any, **named: Any) -> pq.FileMetaData:
        nonlocal most
        footer = read(*given, **named)
        most = max(most, footers_in_memory() - before)
        return footer

    monkeypatch.setattr(pq, "read_metadata", counted)
    assert column_max(store_of(str(tmp_path)), "t", paths, "since_ns") == 19
    assert most == 1
