"""Footers hold the results of their file, also after files were merged."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from headgate.pipeline.kernels.file_checks import FOOTER_KEY
from headgate.pipeline.store.delta_log import commit_append, ensure_table, table_files
from headgate.pipeline.store.footers import file_checks
from headgate.pipeline.store.housekeeping.compact import compact_table
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
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
