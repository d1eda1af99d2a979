"""A trigger computes the minutes that its telemetry touches; the others stay as they are.

However telemetry arrives, the tables have the rows that one computation of everything gives.
"""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline import jobs
from headgate.pipeline.options import SourceOptions, StreamOptions
from headgate.pipeline.store.delta_log import TOUCHED_KEY, ensure_table, table_files
from headgate.pipeline.streaming import refresh_pace
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.catalogue import FILLED
from headgate.pipeline.tables.columns import HOUR_NS, Table
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from headgate.pipeline.tables.schemas import MESSAGE_SCHEMA
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from tests.spark.conftest import many_tasks
from tests.spark.telemetry_topic import Topic, fill, rows_of
from tests.unit.pipeline.play import S
from tests.unit.pipeline.story_play import BEGIN, NS, Backlog, StoryBroker

BACKLOGS = (
    Backlog(f"{NS}slow", "..C"),
    Backlog(f"{NS}mixed", ("CC...T.TT..C....S.." * 5)[:66]),
    Backlog(f"{NS}gone", "...CCC "),
)
HOUR = BEGIN // HOUR_NS + 1
BY_MINUTE = (INTERVALS, ATTRIBUTION, PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE, QUOTA_USAGE)


def minutes(player: StoryBroker, count: int) -> list[bytes]:
    return [m for _ in range(count * 6) for m in player.window(10)]


def parts() -> list[list[bytes]]:
    """Eight minutes over an hour's edge, then minute by minute; a restart; a late message; then
    the next hour."""
    player = StoryBroker(backlogs=BACKLOGS, start_ns=BEGIN)
    found = [minutes(player, 8), minutes(player, 1), minutes(player, 1), minutes(player, 4)]
    late = found[2].pop(3)
    again = StoryBroker(backlogs=BACKLOGS, start_ns=player.now_ns + 20 * S, boot="boot-2")
    found += [minutes(again, 2), [late], minutes(again, 48), minutes(again, 2)]
    return found


def touched_by(out: Path, table: Table) -> list[TouchedMinutes]:
    """What each version of a table replaced."""
    found = []
    for log in sorted((out / table.name / "_delta_log").glob("*.json")):
        for line in log.read_text().splitlines():
            told = (json.loads(line).get("commitInfo") or {}).get(TOUCHED_KEY)
            if told is not None:
                found.append(TouchedMinutes.from_json(told))
    return found


def test_triggers_of_minutes_give_the_rows_of_one_computation(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.version
    # As if all this were of now: the stream computes after each batch.
    monkeypatch.setattr(refresh_pace, "BEHIND_S", math.inf)
    topic, at_once = Topic(tmp_path / "topic"), Topic(tmp_path / "at-once")
    streamed, fresh = tmp_path / "streamed", tmp_path / "fresh"
    messages = parts()
    for part in messages:
        topic.publish(part)
    at_once.publish([m for part in messages for m in part])
    progress = io.StringIO()

    def one_by_one(session: SparkSession) -> DataFrame:
        frame = session.readStream.schema(MESSAGE_SCHEMA).option("maxFilesPerTrigger", 1)
        return frame.parquet(str(topic.folder))

    jobs.run_stream(
        StreamOptions(SourceOptions(str(streamed)), trigger_s=0.1),
        progress,
        messages=one_by_one,
        should_stop=lambda: f"batch {len(messages) - 1}:" in progress.getvalue(),
    )
    with many_tasks():
        fill(fresh, at_once)
    for name in FILLED:
        assert rows_of(streamed, name) == rows_of(fresh, name), name
    for table in BY_MINUTE:
        partial = [touched for touched in touched_by(streamed, table) if touched.partial]
        assert partial, table.name
    short = [t for t in touched_by(streamed, INTERVALS) if len(t.get(HOUR, range(60))) <= 6]
    assert len(short) >= 5
    files = table_files(ensure_table(str(streamed), INTERVALS))
    assert any(file.minutes_ns and len({*file.minutes_ns}) == 1 for file in files)
