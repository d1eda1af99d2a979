"""A job reports lost telemetry with its time range."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.pipeline.store.delta_log import commit_append, ensure_table
from headgate.pipeline.store.housekeeping.compact import compact_table
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.streaming import gaps
from headgate.pipeline.streaming.gaps import TelemetryGaps
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from tests.unit.pipeline.play import T0, Broker, S, bronze


class Tables:
    """A folder with bronze alone."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self._batches = 0
        ensure_table(self.root, BRONZE_SAMPLES)

    def append(self, messages: list[bytes]) -> None:
        """Add messages, in a commit of their own."""
        self._batches += 1
        named = [(BRONZE_SAMPLES.name, bronze(messages))]
        files = write_tables(self.root, f"task-{self._batches}", named)
        commit_append(self.root, BRONZE_SAMPLES, files, None)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def windows(broker: Broker, count: int) -> list[bytes]:
    return [message for _ in range(count) for message in broker.window(10)]


def test_a_trimmed_start_is_reported_with_its_times(tables: Tables) -> None:
    broker = Broker()
    tables.append(windows(broker, 4))
    watch = TelemetryGaps(tables.root)
    assert watch.new_sentences() == []
    windows(broker, 3)
    tables.append(windows(broker, 2))
    assert watch.new_sentences() == [
        "Telemetry of b1 from 2025-11-21 10:00:40 UTC to 2025-11-21 10:01:10 UTC is missing: 3 "
        "messages expired before the pipeline read them."
    ]
    assert watch.new_sentences() == []


def test_a_stream_reports_each_gap_once(tables: Tables) -> None:
    broker = Broker()
    watch = TelemetryGaps(tables.root)
    for _ in range(3):
        tables.append(windows(broker, 2))
        assert watch.new_sentences() == []
        compact_table(tables.root, BRONZE_SAMPLES.name)
    windows(broker, 1)
    tables.append(windows(broker, 2))
    assert len(watch.new_sentences()) == 1


def test_downtime_of_a_broker_has_another_sentence(tables: Tables) -> None:
    tables.append(windows(Broker(), 2))
    watch = TelemetryGaps(tables.root)
    tables.append(windows(Broker(start_ns=T0 + 600 * S, boot="boot-2"), 2))
    assert watch.new_sentences() == [
        "There is no telemetry of b1 from 2025-11-21 10:00:20 UTC to 2025-11-21 10:10:00 UTC: its "
        "broker was down, or the messages expired before the pipeline read them."
    ]


def test_the_search_for_a_source_goes_back_to_its_newest_file(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was last seen hours before the others: in files that are looked at later."""
    monkeypatch.setattr(gaps, "_FILES_AT_ONCE", 1)
    gone, there = Broker(source="b2"), Broker()
    tables.append([*windows(gone, 1), *windows(there, 1)])
    for hour in range(1, 4):
        later = Broker(start_ns=T0 + 3_600 * hour * S, boot=f"boot-{hour}")
        tables.append(windows(later, 1))
    watch = TelemetryGaps(tables.root)
    windows(gone, 2)
    windows(later, 1)
    tables.append([*windows(gone, 1), *windows(later, 1)])
    said = watch.new_sentences()
    assert [text.split(" is missing")[0] for text in said] == [
        "Telemetry of b1 from 2025-11-21 13:00:10 UTC to 2025-11-21 13:00:20 UTC",
        "Telemetry of b2 from 2025-11-21 10:00:10 UTC to 2025-11-21 10:00:30 UTC",
    ]


def test_a_first_read_reports_only_certain_losses(tables: Tables) -> None:
    watch = TelemetryGaps(tables.root)
    late = Broker(source="b2")
    windows(late, 5)
    tables.append([*windows(Broker(), 1), *windows(late, 1)])
    assert watch.new_sentences() == [
        "Telemetry of b2 from the start of its broker to 2025-11-21 10:00:50 UTC is missing: 5 "
        "messages expired before the pipeline read them."
    ]
