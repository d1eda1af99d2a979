"""A folder has rows of topics or of scrapes, never of both."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.base.errors import InputError
from headgate.pipeline.kernels.decode import bronze_tables
from headgate.pipeline.single_source import check_single_source
from headgate.pipeline.store.delta_log import commit_append, ensure_table
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from tests.unit.pipeline.play import message_batch, play
from tests.unit.pipeline.scrapes.judged import all_works, tables
from tests.unit.pipeline.scrapes.texts import write_scrapes


def fill(root: Path, rows: Iterable[pa.Table]) -> None:
    files = write_tables(str(root), "0", ((BRONZE_SAMPLES.name, each) for each in rows))
    commit_append(str(root), BRONZE_SAMPLES, files, None)


def test_an_empty_or_missing_folder_accepts_both_sources(tmp_path: Path) -> None:
    for is_about_scrapes in (True, False):
        check_single_source(str(tmp_path / "missing"), is_about_scrapes=is_about_scrapes)
    ensure_table(str(tmp_path), BRONZE_SAMPLES)
    for is_about_scrapes in (True, False):
        check_single_source(str(tmp_path), is_about_scrapes=is_about_scrapes)


def test_scrapes_are_refused_in_a_folder_of_topics(tmp_path: Path) -> None:
    told = bronze_tables(message_batch(play(3)))
    fill(tmp_path, (rows for name, rows in told if name == BRONZE_SAMPLES.name))
    check_single_source(str(tmp_path), is_about_scrapes=False)
    with pytest.raises(InputError, match="was filled from telemetry records; scrapes would count"):
        check_single_source(str(tmp_path), is_about_scrapes=True)


def test_topics_are_refused_in_a_folder_of_scrapes(tmp_path: Path) -> None:
    folder, root = tmp_path / "scrapes", tmp_path / "tables"
    write_scrapes(folder, range(3))
    fill(root, [tables(all_works(folder, 1))])
    check_single_source(str(root), is_about_scrapes=True)
    with pytest.raises(InputError, match="was filled from scrapes; telemetry records would count"):
        check_single_source(str(root), is_about_scrapes=False)
