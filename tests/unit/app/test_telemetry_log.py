"""The telemetry log: made when it is needed, and a line says when it is missing."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.app import telemetry_log
from headgate.app.accept_loss import accept_loss
from headgate.app.open_stores import open_log, open_metadata
from headgate.app.telemetry_log import SEGMENT_BYTES, has_telemetry_log, open_telemetry_log
from headgate.base.clock import SystemClock
from headgate.base.errors import CorruptionError, StorageError
from headgate.base.names import parse_topic
from headgate.fs import OsFs
from headgate.ledger import CommitLog
from headgate.ledger.format.flush_position import FlushPosition, FlushPositionFile
from headgate.metadata.catalog import Catalog
from headgate.policy.settings import Settings
from headgate.storage.managed_logs import TELEMETRY_LOG
from headgate.storage.store_binding import BindingError
from tests.unit.app.test_open_stores import SMALL, owned
from tests.unit.ledger.support import append, bodies_of

CLOCK = SystemClock()


def settings(*, enabled: bool) -> Settings:
    made = Settings()
    made.set("headgateTelemetryEnabled", str(enabled).lower())
    return made


def start(path: Path, *, enabled: bool = True, messages: int = 0) -> list[bytes] | None:
    """Start and stop as a broker does. Returns what the telemetry log holds, None without one;
    ``messages`` are first stored in the main log, as an earlier release did."""
    asked = settings(enabled=enabled)
    topic = parse_topic(asked.headgateTelemetryTopic)
    with owned(path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        both = has_telemetry_log(catalog, asked)
        with closing(open_log(directory, catalog, store, CLOCK, SMALL, is_last=not both)) as main:
            if messages:
                for change in (
                    catalog.plan_first_boot(system_namespaces=[topic.namespace]),
                    catalog.plan_create_topic(topic, now_ms=1),
                ):
                    if change is not None:
                        store.commit(change.writes)
                        catalog.apply(change)
                append(main, 1, *(b"%d" % at for at in range(messages)))
            log = open_telemetry_log(directory, catalog, store, CLOCK, asked, main, SMALL)
            if log is None:
                return None
            with closing(log):
                row = catalog.topic(topic.full)
                return [] if row is None else bodies_of(log, row.number)


def test_it_is_made_when_telemetry_is_published(tmp_path: Path) -> None:
    assert start(tmp_path, enabled=False) is None
    assert not (tmp_path / TELEMETRY_LOG).exists()
    assert start(tmp_path) == []
    assert start(tmp_path, enabled=False) == []


def test_what_the_main_log_holds_is_moved(tmp_path: Path) -> None:
    assert start(tmp_path, messages=3) == [b"0", b"1", b"2"]
    assert start(tmp_path) == [b"0", b"1", b"2"]


def test_one_that_is_gone_is_missed(tmp_path: Path) -> None:
    start(tmp_path, messages=3)
    shutil.rmtree(tmp_path / TELEMETRY_LOG)
    with pytest.raises(BindingError, match="telemetry-log is missing or empty"):
        start(tmp_path)
    assert "telemetry-log is missing or empty" in accept_loss("log", str(tmp_path))
    assert start(tmp_path) == []
    shutil.rmtree(tmp_path / TELEMETRY_LOG)
    with pytest.raises(BindingError, match="telemetry-log is missing or empty"):
        start(tmp_path)


def test_one_that_lost_its_last_file_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start(tmp_path, messages=3)
    end_lost(tmp_path / TELEMETRY_LOG)
    assert start(tmp_path) == []
    (line,) = [one.message for one in caplog.records if one.levelname == "ERROR"]
    (aside,) = tmp_path.glob("telemetry-log.damaged-*")
    assert "log is missing, and batch" in line
    assert f"It is kept as {aside}, and a new one begins" in line
    assert (aside / "identity").exists()
    caplog.clear()
    assert start(tmp_path) == []
    assert not caplog.records
    shutil.rmtree(tmp_path / "log")  # nothing is accepted any more
    with pytest.raises(BindingError, match="/log is missing or empty"):
        start(tmp_path)


def test_damage_of_the_main_log_still_refuses_the_start(tmp_path: Path) -> None:
    start(tmp_path, messages=3)
    end_lost(tmp_path / "log")
    with pytest.raises(CorruptionError, match="is missing, and batch"):
        start(tmp_path)


def test_a_damaged_one_that_cannot_be_moved_refuses_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = OsFs.rename

    def refused(fs: OsFs, source: str, target: str) -> None:
        if ".damaged-" in target:
            raise PermissionError("no")
        rename(fs, source, target)

    start(tmp_path, messages=3)
    end_lost(tmp_path / TELEMETRY_LOG)
    monkeypatch.setattr(OsFs, "rename", refused)
    with pytest.raises(CorruptionError, match="is missing, and batch"):
        start(tmp_path)
    monkeypatch.undo()
    assert start(tmp_path) == []


def end_lost(path: Path) -> None:
    """Remove the last segment file, which the flush position says was durable."""
    flush_position = FlushPositionFile(OsFs(), str(path))
    flush_position.begin(FlushPosition(1 << 40, 1 << 20, 5_000))
    flush_position.close()


def test_a_main_log_that_is_gone_is_accepted_with_the_telemetry_in_place(tmp_path: Path) -> None:
    start(tmp_path, messages=3)
    shutil.rmtree(tmp_path / "log")
    with pytest.raises(BindingError, match="/log is missing or empty"):
        start(tmp_path)
    assert "/log is missing or empty" in accept_loss("log", str(tmp_path))
    assert start(tmp_path) == [b"0", b"1", b"2"]


def refuse(*_: object, **__: object) -> CommitLog:
    raise StorageError("no room for the first segment", retryable=True)


def test_without_room_for_it_the_main_log_serves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry_log, "open_log", refuse)
    assert start(tmp_path, messages=3) is None
    assert "main log takes the telemetry until the next start: no room for the first" in caplog.text
    monkeypatch.undo()
    assert start(tmp_path) == [b"0", b"1", b"2"]
    monkeypatch.setattr(telemetry_log, "open_log", refuse)
    with pytest.raises(StorageError):
        start(tmp_path)


def test_what_was_accepted_holds_for_one_start_also_without_room_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, enabled=False)
    shutil.rmtree(tmp_path / "log")
    with pytest.raises(BindingError, match="/log is missing or empty"):
        start(tmp_path)
    accept_loss("log", str(tmp_path))
    monkeypatch.setattr(telemetry_log, "open_log", refuse)
    assert start(tmp_path) is None
    shutil.rmtree(tmp_path / "log")
    with pytest.raises(BindingError, match="/log is missing or empty"):
        start(tmp_path)


def test_its_segments_are_small() -> None:
    assert replace(SMALL, segment_bytes=SEGMENT_BYTES).segment_bytes == 8 << 20
