"""Files of a job besides the tables: one checkpoint for each folder of them, and logs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.store.folder import (
    checkpoint_id,
    checkpoint_path,
    log_folder,
    work_folder,
)


def test_a_checkpoint_belongs_to_the_tables_whichever_brokers_are_read() -> None:
    urls = ("pulsar://other:6650", "pulsar://127.0.0.1:6650"), ("http://other:8080", "http://h:1")
    other = SourceOptions("t", *urls, topic="persistent://a/b/c")
    assert checkpoint_path(other) == checkpoint_path(SourceOptions("t"))
    assert checkpoint_path(SourceOptions("t")) != checkpoint_path(SourceOptions("u"))


def test_checkpoint_id_is_that_of_its_metadata(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"1-2-3"}')
    assert checkpoint_id(str(tmp_path)) == "1-2-3"


def test_a_work_folder_has_checkpoints_for_each_folder_of_tables(tmp_path: Path) -> None:
    work = str(tmp_path / "work")
    paths = {
        checkpoint_path(SourceOptions(out, work=work))
        for out in ("s3://tables/a", "s3://tables/a/", "u")
    }
    assert len(paths) == 2
    assert {Path(path).parent for path in paths} == {tmp_path / "work" / "_checkpoints"}


def test_a_bucket_holds_no_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"s3://tables/a cannot hold .* \(--work\)"):
        work_folder(SourceOptions("s3://tables/a"))
    with pytest.raises(InputError, match="--work"):
        checkpoint_path(SourceOptions("s3://tables/a"))
    assert work_folder(SourceOptions("s3://tables/a", work="w")) == "w"
    assert work_folder(SourceOptions("t", work="w")) == "w"
    assert work_folder(SourceOptions("t")) == "t"
    assert work_folder(SourceOptions("s3://tables/a", scrapes="s")) is None


def test_logs_are_written_to_the_folder(tmp_path: Path) -> None:
    with log_folder(str(tmp_path / "a" / "b")) as folder:
        assert folder == str(tmp_path / "a" / "b")
    assert Path(folder).is_dir()
    (tmp_path / "file").touch()
    with (
        pytest.raises(InputError, match="file/x cannot be used: Not a directory"),
        log_folder(str(tmp_path / "file" / "x")),
    ):
        pass


def test_the_temporary_log_of_a_failed_job_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with log_folder("s3://tables/a") as folder:
        assert Path(folder).parent == tmp_path
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RuntimeError), log_folder("s3://tables/a") as folder:
        raise RuntimeError
    assert [str(path) for path in tmp_path.iterdir()] == [folder]
