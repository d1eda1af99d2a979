"""One writer per folder; a checkpoint for each set of topics."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.store.folder import (
    checkpoint_id,
    checkpoint_path,
    folder_lock,
    spark_log_path,
)


def test_a_second_writer_is_refused_and_told_who(tmp_path: Path) -> None:
    out = str(tmp_path / "tables")
    with (
        folder_lock(out),
        pytest.raises(InputError, match=f"another job \\(process {os.getpid()}\\)"),
        folder_lock(out),
    ):
        pass
    with folder_lock(out):
        assert (tmp_path / "tables").is_dir()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Not a directory"), folder_lock(str(tmp_path / "file/x")):
        pass


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with (
        pytest.raises(InputError, match=r"holds 'thesis.txt' and no tables"),
        folder_lock(str(tmp_path)),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    (tmp_path / "bronze_samples").mkdir()
    with folder_lock(str(tmp_path)):
        assert (tmp_path / ".lock").exists()


def test_hidden_files_do_not_make_a_folder_foreign(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*")
    with folder_lock(str(tmp_path)):
        spark_log_path(str(tmp_path)).write_text("x")
    with folder_lock(str(tmp_path)):
        assert spark_log_path(str(tmp_path)).read_text() == "x"


def test_checkpoints_differ_by_topics() -> None:
    one = SourceOptions("t")
    other = SourceOptions("t", broker_urls=("pulsar://other:6650",))
    assert checkpoint_path(one) == checkpoint_path(SourceOptions("t"))
    assert checkpoint_path(one) != checkpoint_path(other)


def test_checkpoint_id_is_that_of_its_metadata(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"1-2-3"}')
    assert checkpoint_id(str(tmp_path)) == "1-2-3"
