"""Files become bronze rows, or are refused; the division into tasks does not matter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.pipeline.scrapes.decoding import (
    TASK_COLUMN,
    VALUE_BYTES_MAX,
    scrape_tables,
    task_tables,
)
from headgate.pipeline.scrapes.folder import ScrapeTask, broker_folders, file_name, scrape_tasks
from headgate.record.fields import STATE_FIELD_NAMES, Kind
from tests.unit.pipeline.scrapes.judged import all_works, judgements, minutes, tables
from tests.unit.pipeline.scrapes.texts import SITUATIONS, STEP_S, T0_MS, text_of, write_scrapes


def test_situations_are_judged_as_built(tmp_path: Path) -> None:
    write_scrapes(tmp_path, range(13))
    found = judgements(tmp_path)
    assert {name: row["verdict"] for name, row in found.items()} == {
        each.name: each.verdict for each in SITUATIONS
    }
    assert all(row["completeness"] == 1.0 for row in found.values())
    assert found["sub-limit"]["appended"] == 500 * 180
    assert found["alone"]["growth_messages"] == 200 // 20 * 180
    assert {row["residual_messages"] for row in found.values()} == {None}


def test_minutes_have_all_their_seconds_and_no_gap(tmp_path: Path) -> None:
    write_scrapes(tmp_path, range(13))
    for row in minutes(tmp_path):
        assert sum(row[name] or 0 for name in STATE_FIELD_NAMES) == row["covered_ns"]
        assert (row["gaps"], row["restarts"], row["resets"], row["samples"]) == (0, 0, 0, 4)
    topics = [row for row in minutes(tmp_path, Kind.TOPIC) if row["topic"].endswith("/slow")]
    assert [row["msgs_in"] for row in topics] == [500 * 60] * 3


def test_the_division_into_tasks_does_not_matter(tmp_path: Path) -> None:
    write_scrapes(tmp_path, range(9))
    order = [(name, "ascending") for name in ("kind", "topic", "seq", "boot_id")]
    one, many = (tables(all_works(tmp_path, parts)).sort_by(order) for parts in (1, 4))
    assert one.num_rows == 9 + 8 * 4 * len(SITUATIONS)
    assert one == many


def test_a_topic_reload_is_a_counter_reset(tmp_path: Path) -> None:
    write_scrapes(tmp_path, range(3))
    reloaded = text_of(45, since_s=40).replace('0.0"', '0"')
    (tmp_path / file_name(T0_MS + 45_000)).write_text(reloaded)
    (row,) = [row for row in minutes(tmp_path, Kind.TOPIC) if row["topic"].endswith("/slow")]
    assert row["resets"] == 1
    assert row["msgs_in"] == 500 * 30 + 500 * 5


def test_a_missing_scrape_is_bridged_and_a_long_gap_is_not(tmp_path: Path) -> None:
    write_scrapes(tmp_path, [0, 1, 7, 8, 17, 18])
    rows = [row for row in minutes(tmp_path) if row["topic"].endswith("/slow")]
    covered = sum(row["covered_ns"] for row in rows)
    assert covered == (8 + 1) * STEP_S * 10**9
    assert tables(all_works(tmp_path))["kind"].to_pylist().count("batch") == 6


def test_a_single_late_scrape_is_quarantined(tmp_path: Path) -> None:
    write_scrapes(tmp_path, range(3))
    (broker,) = broker_folders(str(tmp_path))
    first, late, last = broker.times_ms
    refused = replace(broker, wrong_names=("gone",))
    (task,) = scrape_tasks(refused, last, {file_name(first), file_name(last)}, 1)
    found = tables([ScrapeTask.from_json(task.to_json())], "bronze_quarantine").to_pylist()
    assert [row["message_id"] for row in found] == ["gone", file_name(late)]
    # A file that is gone by now is told of at the time of the last scrape.
    assert found[0]["publish_time"].timestamp() * 1_000 == last
    assert found[1]["reason"] == "it arrived after a later scrape had been read"
    assert [name for name, _ in task_tables(task)] == ["bronze_quarantine"] * 2


def test_an_invalid_file_is_quarantined_and_others_are_read(tmp_path: Path) -> None:
    write_scrapes(tmp_path, range(6))
    times = [T0_MS + 1_000 * STEP_S * step for step in range(6)]
    (tmp_path / file_name(times[1])).write_bytes(b"")
    (tmp_path / file_name(times[2])).write_bytes(b"\xff\xfe" * VALUE_BYTES_MAX)
    (tmp_path / file_name(times[3])).write_text("<html>503</html>\n")
    broken = f"{text_of(4 * STEP_S)}pulsar_rate_in{{topic=broken}} 1\npulsar_rate_in{{ 2\n"
    (tmp_path / file_name(times[4])).write_text(broken)
    (tmp_path / "readme").write_text("mine")
    found = tables(all_works(tmp_path, 2), "bronze_quarantine").to_pylist()
    told = {row["message_id"]: row["reason"] for row in found}
    assert [row["message_topic"] for row in found] == [f"scrape:{tmp_path.name}"] * 5
    assert told[file_name(times[1])] == told[file_name(times[3])]
    assert told[file_name(times[1])].startswith("it has no series of a topic")
    assert told[file_name(times[2])].startswith("it is not UTF-8")
    assert told["readme"] == "the name is not <milliseconds since 1970>.prom"
    lines = next(row for row in found if row["message_id"].endswith("#lines"))
    assert lines["reason"].startswith("2 of its lines cannot be read")
    assert lines["value"] == b"pulsar_rate_in{topic=broken} 1"
    assert max(len(row["value"]) for row in found) == VALUE_BYTES_MAX
    rows = [row for row in minutes(tmp_path, parts=2) if row["topic"].endswith("/slow")]
    assert sum(row["covered_ns"] for row in rows) == 5 * STEP_S * 10**9


def test_a_file_that_cannot_be_opened_fails_the_task(tmp_path: Path) -> None:
    """It would be refused for good; the task fails instead and is repeated."""
    write_scrapes(tmp_path, range(2))
    (task,) = all_works(tmp_path)
    (tmp_path / file_name(T0_MS)).unlink()
    batch = pa.record_batch({TASK_COLUMN: [task.to_json()]})
    with pytest.raises(FileNotFoundError):
        list(scrape_tables(batch))


@pytest.mark.parametrize("step", [0, 200])
def test_one_scrape_gives_only_its_batch_row(tmp_path: Path, step: int) -> None:
    write_scrapes(tmp_path, [step])
    assert tables(all_works(tmp_path))["kind"].to_pylist() == ["batch"]
