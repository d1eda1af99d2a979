"""A restored directory has an id of its own, and gives no message id twice."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from headgate.app.backup.rebind import rebind
from headgate.app.open_stores import open_log, open_metadata
from headgate.base.clock import SystemClock
from headgate.fs import OsFs
from headgate.ledger import look_at_log
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import DamagedMetadataError
from tests.unit.app.test_ledger_tools import fill
from tests.unit.app.test_open_stores import SMALL, owned
from tests.unit.metadata.test_file_check import forge_journal


def first_id(path: Path) -> int:
    """Start on the directory; the ledger of the next message."""
    with owned(path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        log = open_log(directory, catalog, store, SystemClock(), SMALL)
        (number,) = catalog.topic_numbers_in("")
        assert log.topic(number).end == 5
        log.stage_entry(log.topic(number), 1, 1000, 0, b"six")
        batch = log.seal_batch()
        assert batch is not None
        log.commit(batch)
        ledger_id = log.topic(number).last_ledger()[0]
        log.close()
        assert catalog.identity.accepted_loss == ""
        return ledger_id


def test_the_id_changes_in_metadata_and_log(tmp_path: Path) -> None:
    fill(tmp_path)
    before = look_at_log(OsFs(), f"{tmp_path}/log").identity
    assert before is not None
    rebind(str(tmp_path))
    rebind(str(tmp_path))  # as after a kill
    after = look_at_log(OsFs(), f"{tmp_path}/log").identity
    assert after is not None
    assert after.data_id != before.data_id
    assert (after.starts, after.topic_number) == (before.starts, before.topic_number)
    assert not (tmp_path / "metadata.sqlite3-wal").exists()
    assert first_id(tmp_path) > 1 << 40


def test_a_journal_of_the_backup_has_no_file_elsewhere_removed(tmp_path: Path) -> None:
    """A manifest may have files that no backup makes."""
    path, victim = tmp_path / "data", tmp_path / "victim"
    fill(path)
    victim.write_text("of somebody")
    forge_journal(path / "metadata.sqlite3", victim)
    with pytest.raises(DamagedMetadataError, match="names another file"):
        rebind(str(path))
    assert victim.read_text() == "of somebody"


def test_only_the_first_start_skips_ids(tmp_path: Path) -> None:
    fill(tmp_path)
    rebind(str(tmp_path))
    first = first_id(tmp_path)
    with owned(tmp_path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        log = open_log(directory, catalog, store, SystemClock(), SMALL)
        (number,) = catalog.topic_numbers_in("")
        log.stage_entry(log.topic(number), 1, 1000, 0, b"seven")
        batch = log.seal_batch()
        assert batch is not None
        log.commit(batch)
        assert log.topic(number).last_ledger()[0] < first + (1 << 21)
        log.close()


def test_a_directory_without_an_id_stays_without(tmp_path: Path) -> None:
    with owned(tmp_path) as directory, closing(open_metadata(directory)):
        pass
    rebind(str(tmp_path))
    with owned(tmp_path) as directory, closing(open_metadata(directory)) as store:
        assert Catalog("c", store.load()).identity.data_id == ""
