"""Opening metadata and log together; a start creates no metadata beside an existing log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from headgate.app.data_directory import DataDirectory
from headgate.app.open_stores import open_log, open_metadata
from headgate.base.clock import SystemClock
from headgate.fs import OsFs
from headgate.ledger import LedgerSettings
from headgate.metadata.catalog import Catalog
from headgate.storage.store_binding import BindingError

SMALL = LedgerSettings(segment_bytes=65_536)


@contextmanager
def owned(path: Path) -> Iterator[DataDirectory]:
    directory = DataDirectory.open(OsFs(), str(path))
    with closing(directory):
        yield directory


def run(path: Path) -> str:
    """Open and close both; returns the id that binds them."""
    with owned(path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        open_log(directory, catalog, store, SystemClock(), SMALL).close()
        found = directory.log_place().found
        assert found.identity is not None
        assert found.identity.data_id == catalog.identity.data_id
        return found.identity.data_id


def test_a_new_directory_gets_an_id_and_keeps_it(tmp_path: Path) -> None:
    first = run(tmp_path / "a")
    assert len(first) == 32
    assert run(tmp_path / "a") == first
    assert run(tmp_path / "b") != first


def test_no_metadata_are_made_beside_a_log(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "metadata.sqlite3").unlink()
    before = sorted(tmp_path.rglob("*"))
    with (
        owned(tmp_path) as directory,
        pytest.raises(BindingError, match=r"metadata\.sqlite3 is missing, but .*/log is there"),
    ):
        open_metadata(directory)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_directory_that_is_cleared_of_both_begins_anew(tmp_path: Path) -> None:
    first = run(tmp_path)
    (tmp_path / "metadata.sqlite3").unlink()
    (tmp_path / "log").rename(tmp_path.parent / f"{tmp_path.name}-moved-away")
    assert run(tmp_path) != first


def test_a_telemetry_log_without_metadata_is_named_too(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "metadata.sqlite3").unlink()
    (tmp_path / "log").rename(tmp_path / "telemetry-log")
    with (
        owned(tmp_path) as directory,
        pytest.raises(BindingError, match=r"move [^ ]*/telemetry-log away$"),
    ):
        open_metadata(directory)


def test_a_start_that_lacks_the_second_log_changes_nothing(tmp_path: Path) -> None:
    run(tmp_path)
    with owned(tmp_path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        open_log(directory, catalog, store, SystemClock(), SMALL, "telemetry-log").close()
    (tmp_path / "telemetry-log" / "identity").unlink()
    before = {path: path.read_bytes() for path in (tmp_path / "log").iterdir()}
    with owned(tmp_path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        with pytest.raises(BindingError, match="telemetry-log is no longer bound"):
            open_log(directory, catalog, store, SystemClock(), SMALL)
        assert catalog.identity.starts_by_log == {"log": 1, "telemetry-log": 1}
    assert {path: path.read_bytes() for path in (tmp_path / "log").iterdir()} == before


def test_metadata_that_lose_the_wal_of_their_first_run_stay_bound(tmp_path: Path) -> None:
    """One wrong bit in that file costs the changes in it, and not what binds the log."""
    killed = tmp_path / "killed"
    with owned(tmp_path / "run") as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        with closing(open_log(directory, catalog, store, SystemClock(), SMALL)):
            shutil.copytree(directory.path, killed)
    wal = killed / "metadata.sqlite3-wal"
    wal.unlink()  # as the refusal of a damaged one says
    with owned(tmp_path / "run") as directory:
        found = directory.log_place().found
    assert found.identity is not None
    assert run(killed) == found.identity.data_id
