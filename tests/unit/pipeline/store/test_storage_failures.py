"""A damaged or deleted file of the tables is one sentence in every command that only reads."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError

from headgate.pipeline.failures import PipelineError
from headgate.pipeline.options import ReportOptions, UpgradeOptions
from headgate.pipeline.output.show import ShowOptions, show
from headgate.pipeline.report.job import run_report
from headgate.pipeline.sql.dialect import DUCKDB
from headgate.pipeline.sql.script import view_script
from headgate.pipeline.store.storage_failures import plain_storage_failures
from headgate.pipeline.upgrade.job import run_upgrade
from tests.unit.pipeline.sql.folder import filled

Command = Callable[[str], object]


def shows(table: str) -> Command:
    return lambda out: show(ShowOptions(out, table), io.StringIO(), io.StringIO())


def reports(out: str) -> object:
    return run_report(ReportOptions(out), io.StringIO())


def plans(out: str) -> object:
    options = UpgradeOptions(out, is_dry_run=True)
    return run_upgrade(options, io.StringIO(), io.StringIO())


def said(command: Command, root: Path) -> str:
    with pytest.raises(PipelineError) as caught:
        command(str(root))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def a_file(root: Path, table: str) -> Path:
    return sorted((root / table).rglob("*.parquet"))[0]


@pytest.mark.parametrize(
    ("command", "begins"),
    [
        (shows("attribution"), "show of {} failed: a file is damaged (Could not open Parquet"),
        (reports, "report of {} failed: a file is damaged (Could not open Parquet"),
        (plans, "folder {} cannot be upgraded: a file is damaged (Parquet magic bytes"),
    ],
    ids=["show", "report", "upgrade"],
)
def test_a_damaged_file_is_one_sentence(command: Command, begins: str, tmp_path: Path) -> None:
    filled(tmp_path)
    a_file(tmp_path, "attribution").write_bytes(b"no parquet" * 99)
    text = said(command, tmp_path)
    assert text.startswith(begins.format(tmp_path))
    assert text.endswith(
        "headgate pipeline run --recompute DAY writes the day of a derived table anew"
    )


@pytest.mark.parametrize("command", [shows("backlog_episodes"), shows("episodes")])
def test_a_file_that_is_gone_is_one_sentence(command: Command, tmp_path: Path) -> None:
    """As where a vacuum deleted it while a long query ran."""
    filled(tmp_path)
    a_file(tmp_path, "episodes").unlink()
    text = said(command, tmp_path)
    assert text.startswith(f"show of {tmp_path} failed: a file is gone ({tmp_path}/episodes/")
    assert "so repeat the command" in text


def test_a_damaged_log_is_one_sentence(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "episodes" / "_delta_log" / f"{1:020d}.json").write_text("{", encoding="utf-8")
    text = said(shows("episodes"), tmp_path)
    assert text.startswith(f"table episodes in {tmp_path} cannot be read: ")
    text = said(lambda out: view_script(out, DUCKDB), tmp_path)
    assert text.startswith(f"the tables of {tmp_path} cannot be read: ")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DeltaError("no room\nand a page of more"), "x: no room"),
        (OSError(28, "No space left on device"), "x: [Errno 28] No space left on device"),
        (pa.ArrowInvalid("bad"), "x: a file is damaged (bad): headgate pipeline run --recompute"),
        (FileNotFoundError("p"), "x: a file is gone (p): a vacuum deletes what was replaced"),
    ],
)
def test_each_library_s_failure_is_one_sentence(error: Exception, said: str) -> None:
    with pytest.raises(PipelineError) as caught, plain_storage_failures("x"):
        raise error
    assert str(caught.value).startswith(said)


def test_a_reader_that_leaves_is_no_failure() -> None:
    with pytest.raises(BrokenPipeError), plain_storage_failures("x"):
        raise BrokenPipeError(32, "Broken pipe")
