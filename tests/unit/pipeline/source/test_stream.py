"""The stream of changes: each row of a closed minute once, and again when it changes."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from pyspark.sql import datasource as spark
from pyspark.sql.streaming.datasource import ReadAllAvailable

from headgate.base.errors import InputError
from headgate.pipeline.source import stream
from headgate.pipeline.source.options import parse_options
from headgate.pipeline.source.stream import ChangeReader
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_drop,
    ensure_table,
    open_table,
    source_key,
)
from headgate.pipeline.store.housekeeping.compact import compact_table
from headgate.pipeline.store.table_store import TableStore
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.source.folder import FIRST_HOUR, append, minute_row, replace

Offset = dict[str, Any]


def reader(root: Path, **options: str) -> ChangeReader:
    given = {"path": str(root), "table": "intervals", "readChangeFeed": "true"} | options
    return ChangeReader(parse_options(given, 0))


def batch(
    made: ChangeReader, start: Offset, end: Offset | None = None
) -> tuple[Offset, list[tuple[Any, ...]]]:
    """The next batch: its end, and its rows as minute, topic, count and change."""
    end = made.latestOffset(start, ReadAllAvailable()) if end is None else end
    rows = [
        (row["minute"].hour * 60 + row["minute"].minute - 600, row["topic"], row["msgs_in"],
         row["change"])
        for part in made.partitions(start, end)
        for found in made.read(part)
        for row in found.to_pylist()
    ]  # fmt: skip
    return end, sorted(rows)


def test_closed_minutes_come_once_and_corrections_are_marked(tmp_path: Path) -> None:
    append(tmp_path, [minute_row(place) for place in range(5)])
    made = reader(tmp_path)
    start = made.initialOffset()
    # The newest minute ends at 5, so that minutes before 3 are closed.
    end, rows = batch(made, start)
    assert rows == [(place, "a", place, "new") for place in range(3)]
    assert batch(made, start, end)[1] == rows, "a repeated batch has the same rows"
    assert batch(made, end) == (end, [])

    replace(tmp_path, [0], [
        minute_row(0), minute_row(1, msgs_in=7), *(minute_row(place) for place in range(3, 8)),
        minute_row(0, "late"),
    ])  # fmt: skip
    after, rows = batch(made, end)
    assert rows == [
        (0, "late", 0, "new"),
        (1, "a", 7, "corrected"),
        (2, "a", 2, "removed"),
        (3, "a", 3, "new"),
        (4, "a", 4, "new"),
        (5, "a", 5, "new"),
    ]
    assert batch(reader(tmp_path), end, after)[1] == rows, "also in another process"


def test_an_hour_that_is_replaced_by_the_same_rows_has_no_change(tmp_path: Path) -> None:
    rows = [minute_row(place) for place in range(90)]
    append(tmp_path, rows[:20])
    append(tmp_path, rows[20:])
    made = reader(tmp_path)
    end, _ = batch(made, made.initialOffset())
    replace(tmp_path, [1], rows[60:])
    merged = compact_table(str(tmp_path), INTERVALS.name)
    assert (merged.replaced, merged.added) == (2, 1)
    after, found = batch(made, end)
    assert found == []
    assert after["version"] > end["version"]


def test_a_stream_from_the_latest_has_only_what_follows(tmp_path: Path) -> None:
    append(tmp_path, [minute_row(place) for place in range(5)])
    made = reader(tmp_path, startingFrom="latest", delayMinutes="0")
    start = made.initialOffset()
    append(tmp_path, [minute_row(5)])
    assert batch(made, start)[1] == [(5, "a", 5, "new")]


def test_a_quiet_table_is_closed_by_the_minutes_that_it_has_seen(tmp_path: Path) -> None:
    """A table without rows in the last minutes still gives those before them."""
    append(tmp_path, [minute_row(place) for place in range(30)])
    source = open_table(str(tmp_path), INTERVALS)
    ensure_table(str(tmp_path), ATTRIBUTION)
    row = minute_row(4)
    append(tmp_path, [{name: row[name] for name in ("date", "hour", "minute", "topic")}],
           ATTRIBUTION)  # fmt: skip
    made = reader(tmp_path, table="attribution", columns="minute,topic")
    start = made.initialOffset()
    assert not any(
        True for part in made.partitions(start, made.latestOffset(start, ReadAllAvailable()))
        for _ in made.read(part)
    )  # fmt: skip
    seen = AppTransaction(source_key(source), source.version())
    commit_append(str(tmp_path), ATTRIBUTION, [], seen)
    end = made.latestOffset(start, ReadAllAvailable())
    rows = [row for p in made.partitions(start, end) for b in made.read(p) for row in b.to_pylist()]
    assert [(row["topic"], row["change"]) for row in rows] == [("a", "new")]


def test_what_retention_drops_is_no_change(tmp_path: Path) -> None:
    append(tmp_path, [minute_row(place) for place in range(90)])
    made = reader(tmp_path)
    end, _ = batch(made, made.initialOffset())
    commit_drop(str(tmp_path), INTERVALS.name, FIRST_HOUR + 1)
    append(tmp_path, [minute_row(90)])
    assert batch(made, end)[1] == [(88, "a", 88, "new")]


def test_the_end_of_available_now_is_fixed(tmp_path: Path) -> None:
    append(tmp_path, [minute_row(place) for place in range(5)])
    made = reader(tmp_path)
    start = made.initialOffset()
    made.prepareForTriggerAvailableNow()
    append(tmp_path, [minute_row(place) for place in range(5, 9)])
    assert len(batch(made, start)[1]) == 3


def test_a_closed_minute_stays_closed_with_a_longer_delay(tmp_path: Path) -> None:
    """Rows between the two bounds were marked as removed, and were new again in the next run."""
    append(tmp_path, [minute_row(place) for place in range(10)])
    made = reader(tmp_path, delayMinutes="0")
    end, rows = batch(made, made.initialOffset())
    assert len(rows) == 10
    replace(tmp_path, [0], [minute_row(place, msgs_in=place + (place == 8)) for place in range(11)])
    later = reader(tmp_path, delayMinutes="5")
    later.prepareForTriggerAvailableNow()
    after, rows = batch(later, end)
    assert rows == [(8, "a", 9, "corrected")]
    assert after["closed_ns"] == end["closed_ns"]


def test_an_offset_of_another_or_a_cleaned_table_is_refused(tmp_path: Path) -> None:
    append(tmp_path, [minute_row(place) for place in range(5)])
    made = reader(tmp_path)
    end, _ = batch(made, made.initialOffset())
    gone = end | {"version": 77}
    with pytest.raises(InputError, match=r"not the one that this stream has read; start the"):
        made.latestOffset(gone, ReadAllAvailable())
    old = open_table(str(tmp_path), INTERVALS).file_uris()
    replace(tmp_path, [0], [minute_row(place, msgs_in=1) for place in range(5)])
    for path in old:
        Path(path.removeprefix("file://")).unlink()
    with pytest.raises(InputError, match=r"were deleted by a vacuum.*with a new checkpoint"):
        batch(made, end)
    rmtree(tmp_path / "intervals")
    append(tmp_path, [minute_row(0)])
    with pytest.raises(InputError, match="is not the one that this stream has read"):
        made.latestOffset(end, ReadAllAvailable())


def test_a_look_at_a_table_without_a_new_version_opens_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look loaded the whole log up to three times: seconds of CPU in a folder of a year."""
    append(tmp_path, [minute_row(place) for place in range(5)])
    source = open_table(str(tmp_path), INTERVALS)
    ensure_table(str(tmp_path), ATTRIBUTION)
    seen = AppTransaction(source_key(source), source.version())
    commit_append(str(tmp_path), ATTRIBUTION, [], seen)
    made = reader(tmp_path, table="attribution", columns="minute")
    end = made.latestOffset(made.initialOffset(), ReadAllAvailable())
    monkeypatch.setattr(TableStore, "delta", lambda *_: pytest.fail("it opened a table"))
    monkeypatch.setattr(stream, "IDLE_POLL_S", 0.0)
    assert [made.latestOffset(end, ReadAllAvailable()) for _ in range(3)] == [end] * 3


def test_a_task_without_an_hour_reads_nothing(tmp_path: Path) -> None:
    assert list(reader(tmp_path).read(spark.InputPartition(None))) == []
