"""``quality`` follows from the files that are live: what is written, replaced or written twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from headgate.pipeline.kernels.quality import CheckOutcome
from headgate.pipeline.quality import Checked, begin_quality, check_tables
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_replace,
    ensure_table,
    partition_hour,
)
from headgate.pipeline.store.log_changes import followed
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quality import QUALITY

DAY = date(2026, 11, 24)
START = datetime(2026, 11, 24, 10, tzinfo=UTC)
HOUR = partition_hour({"date": DAY.isoformat(), "hour": "10"})


def minute(place: int, hour: int = 10, **more: Any) -> dict[str, Any]:
    """A row that ``intervals`` and ``attribution`` may have."""
    return {
        "date": DAY, "hour": hour, "minute": START + timedelta(hours=hour - 10, minutes=place),
        "topic": "t", "subscription": "s", "from_ns": 1, "to_ns": 2, "covered_ns": 1,
        "verdict": "NONE", "acked": 1, **more,
    }  # fmt: skip


def write(root: Path, rows: Sequence[Mapping[str, Any]], hours: Sequence[int] = ()) -> None:
    """Append to ``intervals`` and replace ``attribution``, in the hours of the rows."""
    for table in (INTERVALS, ATTRIBUTION):
        schema = table_arrow_schema(table)
        found = [{"kind": "subscription", **row} for row in rows]
        part = pa.Table.from_pylist(found, schema)
        files = write_tables(str(root), "0", [(table.name, part)])
        touched = [*hours] or [HOUR + row["hour"] - 10 for row in rows]
        commit_replace(str(root), table, files, touched, None)


def rows_of(root: Path) -> list[dict[str, Any]]:
    table = DeltaTable(root / QUALITY.name).to_pyarrow_table()
    keys = [(name, "ascending") for name in QUALITY.key]
    found: list[dict[str, Any]] = table.sort_by(keys).to_pylist()
    return found


def test_one_look_checks_what_is_new(tmp_path: Path) -> None:
    root = str(tmp_path)
    begin_quality(root)
    write(tmp_path, [minute(0), minute(1, confidence=7.0), minute(0, 11)])
    found = check_tables(root)
    assert str(found) == f"{found.checks} expectations in 2 hours, 1 is not met"
    assert [*found.lines("tables")] == [
        "Hour 2026-11-24T10:00Z: 1 of 2 rows of attribution have a value out of range in"
        ' confidence (0 to 1). One of them: {"cluster": null, "topic": "t", "partition": null,'
        ' "subscription": "s", "incarnation": null, "minute": "2026-11-24T10:01:00Z"}.',
        "All of them: headgate pipeline show quality --where is_met=false --out tables",
    ]
    assert found.outcomes["attribution", "values_in_range"] == CheckOutcome(3, 1, "confidence")
    assert found.outcomes["attribution", "acked_agrees"] == CheckOutcome(2, 0)
    assert len(rows_of(tmp_path)) == found.checks
    again = check_tables(root)
    assert (again, str(again), [*again.lines("tables")]) == (Checked(), "nothing new", [])


def test_rows_that_are_computed_anew_replace_their_results(tmp_path: Path) -> None:
    root = str(tmp_path)
    begin_quality(root)
    write(tmp_path, [minute(0, confidence=7.0), minute(0, 11)])
    assert len(check_tables(root).failures) == 1
    bad = rows_of(tmp_path)
    write(tmp_path, [minute(0, confidence=0.5)])
    found = check_tables(root)
    assert (found.hours, found.failures) == (1, ())
    repaired = rows_of(tmp_path)
    assert len(repaired) == len(bad)
    assert all(row["is_met"] for row in repaired)
    # The same rows once more give the same results, whatever the names of their files.
    write(tmp_path, [minute(0, confidence=0.5)])
    check_tables(root)
    assert rows_of(tmp_path) == repaired


def test_a_job_that_was_killed_before_it_looked(tmp_path: Path) -> None:
    """The next one looks at what both wrote."""
    root = str(tmp_path)
    begin_quality(root)
    write(tmp_path, [minute(0, verdict="MOON")])
    write(tmp_path, [minute(0, 11)])
    found = check_tables(root)
    assert (found.hours, [row["expectation"] for row in found.failures]) == (2, ["known_values"])


def test_files_of_an_earlier_release_are_not_read(tmp_path: Path) -> None:
    root = str(tmp_path)
    write(tmp_path, [minute(0, confidence=7.0)])
    begin_quality(root)
    assert check_tables(root) == Checked()
    write(tmp_path, [minute(0, 11)])
    assert check_tables(root).hours == 1


def test_a_file_that_was_committed_twice(tmp_path: Path) -> None:
    root = str(tmp_path)
    begin_quality(root)
    part = pa.Table.from_pylist([minute(0)], table_arrow_schema(ATTRIBUTION))
    for _ in range(2):
        files = write_tables(root, "0", [(ATTRIBUTION.name, part)])
        commit_append(root, ATTRIBUTION, files, None)
    (repeated,) = (r for r in check_tables(root).failures if r["expectation"] == "unique_key")
    assert (repeated["rows_failed"], repeated["rows_checked"]) == (1, 2)


def test_many_failures_get_few_lines(tmp_path: Path) -> None:
    root = str(tmp_path)
    begin_quality(root)
    write(tmp_path, [minute(0, hour, confidence=7.0) for hour in range(10, 18)])
    lines = [*check_tables(root).lines("t")]
    assert len(lines) == 6
    assert lines[0].startswith("Hour 2026-11-24T13:00Z")


def test_one_commit_notes_all_tables(tmp_path: Path) -> None:
    """A job that is killed after the commit repeats nothing, and one before it all."""
    root = str(tmp_path)
    begin_quality(root)
    write(tmp_path, [minute(0)])
    before = ensure_table(root, QUALITY).version()
    check_tables(root)
    delta = ensure_table(root, QUALITY)
    assert delta.version() == before + 1
    for table in (INTERVALS, ATTRIBUTION):
        source = ensure_table(root, table)
        key = f"{table.name}:{source.metadata().id}"
        assert delta.transaction_version(key) == source.version()
    noted = AppTransaction(key, source.version())
    assert not commit_replace(root, QUALITY, [], [HOUR], None, noted)


def test_a_look_reads_what_was_added_to_the_logs(tmp_path: Path) -> None:
    """Not all live files again, of which a folder of a year has many thousands."""
    root = str(tmp_path)
    begin_quality(root)
    for hour in range(10, 14):
        write(tmp_path, [minute(0, hour)])
        assert check_tables(root).hours == 1
    for table in (INTERVALS, ATTRIBUTION, QUALITY):
        assert followed(root, table.name).loads == 1
