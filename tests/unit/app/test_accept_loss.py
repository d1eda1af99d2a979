"""Only a loss that a start refuses can be accepted, and the next start does it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headgate.app.accept_loss import accept_loss
from headgate.base.errors import InputError
from headgate.ledger.errors import DirectoryInUseError
from headgate.storage.store_binding import BindingError
from tests.unit.app.test_open_stores import owned, run


def test_nothing_is_given_up_where_all_is_well(tmp_path: Path) -> None:
    run(tmp_path)
    for loss in ("metadata", "log"):
        with pytest.raises(InputError, match="metadata and log belong together"):
            accept_loss(loss, str(tmp_path))
    run(tmp_path)


def test_a_folder_that_is_no_data_directory_stays_as_it_is(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="is no data directory"):
            accept_loss("log", str(path))
    assert list(tmp_path.iterdir()) == []


def test_older_metadata_are_accepted_for_one_start(tmp_path: Path) -> None:
    run(tmp_path)
    old = (tmp_path / "metadata.sqlite3").read_bytes()
    run(tmp_path)
    run(tmp_path)
    (tmp_path / "metadata.sqlite3").write_bytes(old)
    with pytest.raises(BindingError, match="is older than"):
        run(tmp_path)
    with pytest.raises(BindingError, match="accept-loss metadata"):
        accept_loss("log", str(tmp_path))
    assert "is older than" in accept_loss("metadata", str(tmp_path))
    assert accept_loss("metadata", str(tmp_path)) == "It was noted before"
    run(tmp_path)
    (tmp_path / "metadata.sqlite3").write_bytes(old)
    with pytest.raises(BindingError, match="is older than"):
        run(tmp_path)


def test_a_log_that_is_gone_is_accepted(tmp_path: Path) -> None:
    run(tmp_path)
    shutil.rmtree(tmp_path / "log")
    assert "is missing or empty" in accept_loss("log", str(tmp_path))
    assert not (tmp_path / "log").exists()
    run(tmp_path)


def test_metadata_that_are_gone_cannot_be_accepted(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "metadata.sqlite3").unlink()
    with pytest.raises(BindingError, match="is missing, but"):
        accept_loss("metadata", str(tmp_path))


def test_not_while_a_broker_runs(tmp_path: Path) -> None:
    run(tmp_path)
    with owned(tmp_path), pytest.raises(DirectoryInUseError):
        accept_loss("log", str(tmp_path))
