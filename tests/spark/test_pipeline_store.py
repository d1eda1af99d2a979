"""A folder of tables under the jobs: recomputed days, retention, compaction, older folders."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate.base.errors import InputError
from headgate.pipeline import jobs
from headgate.pipeline import refresh as refreshing
from headgate.pipeline.derived import derived_table
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.derived.intervals import Intervals
from headgate.pipeline.jobs import create_tables
from headgate.pipeline.options import SourceOptions, UpgradeOptions
from headgate.pipeline.progress import Progress
from headgate.pipeline.refresh import recompute, refresh, refresh_all
from headgate.pipeline.session import prepare_session
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_replace,
    ensure_table,
    table_files,
)
from headgate.pipeline.store.delta_writer import FORMAT
from headgate.pipeline.store.housekeeping.compact import compact
from headgate.pipeline.store.housekeeping.retention import drop_before
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.store.spark_reader import object_rows, read_files
from headgate.pipeline.streaming.query import start_query
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_EVENTS, BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES
from headgate.pipeline.tables.episodes import EPISODES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.schemas import MESSAGE_SCHEMA, table_schema
from headgate.pipeline.upgrade.job import run_upgrade
from headgate.pipeline.upgrade.plan import upgrade_plan
from tests.spark.telemetry_topic import Topic, fill, rows_of
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S, bronze
from tests.unit.pipeline.quota_play import quota_play
from tests.unit.pipeline.store.old_folder import old_table

DAY_S = 86_400
MIDNIGHT = T0 + 14 * 3_600 * S
"""2025-11-22T00:00:00Z."""
DAY = date(2025, 11, 22)
NEXT_DAY = date(2025, 11, 23)


def messages_around_midnights() -> list[list[bytes]]:
    """Telemetry of all kinds around three midnights, each of a broker of its own."""
    found = []
    for day in range(3):
        start_ns = MIDNIGHT + (day * DAY_S - 60) * S
        player = Broker(
            start_ns=start_ns, source=f"b{day}", boot=f"boot-{day}", situations=SITUATIONS[:3]
        )
        held = quota_play(120, start_ns=start_ns, source=f"q{day}", boot=f"quota-{day}")
        found.append([*(m for _ in range(12) for m in player.window(10)), *held])
    return found


def rows_around_midnights() -> list[pa.Table]:
    """The samples of that, as three appends of bronze rows."""
    return [bronze(messages) for messages in messages_around_midnights()]


def append(root: Path, rows: pa.Table) -> None:
    ensure_all(root)
    written = write_tables(str(root), "0", [(BRONZE_SAMPLES.name, rows)])
    commit_append(str(root), BRONZE_SAMPLES, written, None)


def append_all(root: Path) -> None:
    """Samples and events around three midnights."""
    for messages in messages_around_midnights():
        append(root, bronze(messages))
        events = bronze(messages, BRONZE_EVENTS.name)
        written = write_tables(str(root), "0", [(BRONZE_EVENTS.name, events)])
        commit_append(str(root), BRONZE_EVENTS, written, None)


def ensure_all(root: Path) -> None:
    for table in TABLES.values():
        ensure_table(str(root), table)


def live(root: Path, table: str, keep: Callable[[str], bool]) -> dict[str, bytes]:
    """The live files of the days that are wanted, with their bytes."""
    return {
        file.path: (root / table / file.path).read_bytes()
        for file in table_files(DeltaTable(root / table))
        if keep(file.partition["date"])
    }


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return prepare_session(spark)


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Topic:
    """Telemetry around three midnights."""
    topic = Topic(tmp_path_factory.mktemp("topic") / "messages")
    topic.publish([m for messages in messages_around_midnights() for m in messages])
    return topic


@pytest.fixture(scope="module")
def midnights(spark: SparkSession, topic: Topic, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that one run reads from the topic; a test that changes them takes a copy."""
    assert spark.version
    root = tmp_path_factory.mktemp("midnights")
    jobs.run_once(SourceOptions(str(root)), io.StringIO(), messages=topic.stream)
    return root


def test_a_recomputed_day_replaces_exactly_that_day(
    session: SparkSession, midnights: Path, tmp_path: Path
) -> None:
    copytree(midnights, tmp_path, dirs_exist_ok=True)
    names = [table.name for table in DERIVED]
    right = {name: rows_of(tmp_path, name) for name in names}
    assert all(rows.num_rows for rows in right.values())
    day = DAY.isoformat()
    others = {name: live(tmp_path, name, lambda found: found != day) for name in names}
    own = {name: live(tmp_path, name, lambda found: found == day) for name in names}
    assert all(others.values())
    assert all(own.values())
    # As if an earlier version had computed the day wrongly: no table learns of it.
    DeltaTable(tmp_path / ATTRIBUTION.name).delete(f"date = '{day}'")

    recompute(session, str(tmp_path), DAY, DAY)
    assert {name: rows_of(tmp_path, name) for name in names} == right
    for name in names:
        assert live(tmp_path, name, lambda found: found != day) == others[name]
        assert not (own[name].keys() & live(tmp_path, name, lambda found: found == day).keys())
    versions = {name: DeltaTable(tmp_path / name).version() for name in names}
    refresh_all(session, str(tmp_path))
    assert versions == {name: DeltaTable(tmp_path / name).version() for name in names}


@pytest.mark.usefixtures("session")
def test_a_run_recomputes_all_days_of_its_option(
    tmp_path: Path, midnights: Path, topic: Topic
) -> None:
    out = tmp_path / "tables"
    copytree(midnights, out)
    source = SourceOptions(str(out))
    right = {table.name: rows_of(out, table.name) for table in DERIVED}
    assert all(rows.num_rows for rows in right.values())
    midnight = MIDNIGHT // HOUR_NS
    for derived in DERIVED:
        commit_replace(str(out), derived.table, [], range(midnight - 24, midnight + 72), None)
    jobs.run_once(source, io.StringIO(), messages=topic.stream, recompute_days=(DAY, NEXT_DAY))
    for name, rows in right.items():
        wanted = pc.is_in(rows["date"], pa.array([DAY, NEXT_DAY]))
        # What tables follow from is gone where it was not recomputed.
        assert rows_of(out, name)["date"].unique().to_pylist() == [DAY, NEXT_DAY], name
        if name in ("intervals", "evictions", "throttle_timeline"):
            assert rows_of(out, name) == rows.filter(wanted), name


def test_days_that_cannot_be_recomputed_are_refused(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2025-11-22, lies before the first, 2025-11-23"):
        recompute(session, str(tmp_path), NEXT_DAY, DAY)
    for rows in rows_around_midnights():
        append(tmp_path, rows)
    assert drop_before(str(tmp_path), 2, now_ns=MIDNIGHT + 3 * DAY_S * S) > 0
    with pytest.raises(InputError, match="telemetry is kept from 2025-11-23 00:00:00 UTC on"):
        recompute(session, str(tmp_path), DAY, DAY)


def test_run_says_which_hours_it_cannot_recompute(
    session: SparkSession, midnights: Path, tmp_path: Path
) -> None:
    copytree(midnights, tmp_path, dirs_exist_ok=True)
    assert recompute(session, str(tmp_path), DAY, NEXT_DAY) == []
    drop_before(str(tmp_path), 2, now_ns=MIDNIGHT + 3 * DAY_S * S)
    before = rows_of(tmp_path, "attribution")
    told = recompute(session, str(tmp_path), NEXT_DAY, NEXT_DAY)
    # Two hours of telemetry are left of the day, its first and its last.
    assert told[1] == (
        "attribution from 2025-11-23 00:00:00 UTC to 2025-11-24 00:00:00 UTC keeps its rows: they "
        "follow from up to 24 h before them, and intervals is kept from 2025-11-23 00:00:00 UTC on."
    )
    assert [text.split()[0] for text in told] == [
        "intervals", "attribution", "episodes", "publish_attribution", "quota_usage"
    ]  # fmt: skip
    assert told[0].startswith("intervals from 2025-11-23 00:00:00 UTC to 2025-11-24 00:00:00 UTC")
    assert rows_of(tmp_path, "attribution") == before


def test_a_long_history_is_computed_in_passes_that_survive_a_kill(
    session: SparkSession, midnights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_all(tmp_path / "many")
    monkeypatch.setattr(derived_table, "PASS_HOURS", 2)
    root, write = str(tmp_path / "many"), refreshing._replace
    committed: list[tuple[int, ...]] = []

    def die_in_the_third(rows: Any, root: str, table: Any, hours: Any, noted: Any) -> None:
        if len(committed) == 2:
            raise InterruptedError
        write(rows, root, table, hours, noted)
        committed.append(tuple(sorted(hours)))

    for table in DERIVED:
        committed.clear()
        with monkeypatch.context() as patch:
            patch.setattr(refreshing, "_replace", die_in_the_third)
            with suppress(InterruptedError):
                refresh(session, root, table)
        assert [len(hours) for hours in committed] == [2, 2], table.name
        half = rows_of(tmp_path / "many", table.name).num_rows
        whole = rows_of(midnights, table.name).num_rows
        assert 0 < half < whole, table.name
        assert refresh(session, root, table)
        assert refresh(session, root, table) == set()
        assert rows_of(tmp_path / "many", table.name) == rows_of(midnights, table.name)


def test_retention_does_not_make_derived_tables_empty(
    session: SparkSession, tmp_path: Path
) -> None:
    first, second, third = rows_around_midnights()
    append(tmp_path, first)
    append(tmp_path, second)
    refresh_all(session, str(tmp_path))
    before = rows_of(tmp_path, "attribution")
    drop_before(str(tmp_path), 2, now_ns=MIDNIGHT + 3 * DAY_S * S)
    kept = rows_of(tmp_path, "attribution")
    assert 0 < kept.num_rows < before.num_rows
    assert set(kept["date"].to_pylist()) == {NEXT_DAY}
    # Telemetry of a dropped hour comes late, and with it new telemetry.
    append(tmp_path, first)
    append(tmp_path, third)
    # The log that tells what came since is gone as well.
    for file in (tmp_path / BRONZE_SAMPLES.name / "_delta_log").glob("*4.json"):
        DeltaTable(tmp_path / BRONZE_SAMPLES.name).create_checkpoint()
        file.unlink()
    refresh_all(session, str(tmp_path))
    after = rows_of(tmp_path, "attribution")
    old = after.filter(pc.less_equal(after["date"], pa.scalar(NEXT_DAY)))
    assert set(after["date"].to_pylist()) == {NEXT_DAY, date(2025, 11, 24)}
    assert old.num_rows >= kept.num_rows
    hour = pc.and_(
        pc.equal(old["date"], pa.scalar(NEXT_DAY)),
        pc.equal(old["hour"], pa.scalar(0, pa.int32())),
    )
    assert old.filter(hour) == kept


def test_compaction_gives_derived_tables_nothing_to_do(
    session: SparkSession, tmp_path: Path
) -> None:
    first, second, _ = rows_around_midnights()
    append(tmp_path, first)
    append(tmp_path, first.slice(0, 0))
    append(tmp_path, second)
    refresh_all(session, str(tmp_path))
    names = [table.name for table in DERIVED]
    before = {name: rows_of(tmp_path, name) for name in names}
    compact(str(tmp_path), [*TABLES], Progress(io.StringIO()))
    assert [refresh(session, str(tmp_path), table) for table in DERIVED] == [set()] * len(DERIVED)
    recompute(session, str(tmp_path), DAY, NEXT_DAY)
    assert {name: rows_of(tmp_path, name) for name in names} == before


def test_a_folder_of_an_earlier_version_gets_its_new_columns(
    session: SparkSession, tmp_path: Path
) -> None:
    """Old rows have nulls there; recomputed rows have values."""
    rows = rows_around_midnights()[0]
    append(tmp_path / "new", rows)
    refresh(session, str(tmp_path / "new"), Intervals())
    right = rows_of(tmp_path / "new", INTERVALS.name)

    root = tmp_path / "old"
    old_table(root, BRONZE_SAMPLES, ["evidence"], rows)
    added = ["oldest_age_max_ns", "gaps"]
    source = old_table(root, INTERVALS, added, right)
    seen = DeltaTable(root / BRONZE_SAMPLES.name)
    key = AppTransaction(f"{seen.metadata().name}:{seen.metadata().id}", seen.version() + 1)
    ensure_all(root)
    commit_append(str(root), INTERVALS, [], key)
    old = read_files(session, str(root), INTERVALS, table_files(source))
    assert old.where(F.col("gaps").isNull()).count() == right.num_rows
    refresh_all(session, str(root))
    assert rows_of(root, "intervals")["gaps"].null_count == right.num_rows
    recompute(session, str(root), date(2025, 11, 21), DAY)
    # A column that was added stands last; the old telemetry does not say what it rests on.
    names = [name for name in right.column_names if name != "evidence"]
    computed = rows_of(root, "intervals").select(names)
    assert computed.to_pylist() == right.select(names).to_pylist()


def test_an_upgrade_recomputes_what_an_earlier_release_lacked(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after each table, and repeated: the rows are those of a folder of this release."""
    new, root = tmp_path / "new", tmp_path / "old"
    rows = rows_around_midnights()[0]
    append(new, rows)
    refresh_all(session, str(new))
    old_table(root, BRONZE_SAMPLES, [], rows)
    old_table(root, INTERVALS, ["oldest_age_max_ns", "gaps"], rows_of(new, INTERVALS.name))
    old_table(root, EPISODES, ["second_cause"], rows_of(new, EPISODES.name))
    create_tables(str(root))
    seen = DeltaTable(root / BRONZE_SAMPLES.name)
    key = AppTransaction(f"{seen.metadata().name}:{seen.metadata().id}", seen.version())
    commit_append(str(root), INTERVALS, [], key)

    class KilledError(BaseException):
        pass

    kills = iter([False, True, True, False, False, True])

    def recomputed(*given: Any) -> None:
        refreshing.recompute_hours(*given)
        if next(kills, False):
            raise KilledError

    @contextmanager
    def started(*_: object) -> Iterator[SparkSession]:
        yield session

    monkeypatch.setattr("headgate.pipeline.upgrade.job.recompute_hours", recomputed)
    for _ in range(4):
        with suppress(KilledError):
            run_upgrade(UpgradeOptions(str(root)), io.StringIO(), io.StringIO(), session=started)
    assert all(plan.is_empty for plan in upgrade_plan(str(root)))
    for table in (INTERVALS, EPISODES, ATTRIBUTION):
        wanted = rows_of(new, table.name)
        assert same_rows(rows_of(root, table.name).select(wanted.column_names), wanted)


def test_the_first_run_over_an_older_folder_fills_the_table_that_it_lacks(
    session: SparkSession, tmp_path: Path
) -> None:
    """A run, and no upgrade: from all minutes that are there, the new ones included."""
    assert session.version
    topic, out, fresh = Topic(tmp_path / "topic"), tmp_path / "tables", tmp_path / "fresh"
    *before, after = messages_around_midnights()
    topic.publish([m for messages in before for m in messages])
    # The table follows from the first of these, and the others follow from it.
    computed = (INTERVALS, ATTRIBUTION, EPISODES)
    said = [fill(out, topic, *computed)]
    rmtree(out / DEMONSTRATED_RATES.name)
    topic.publish(after)
    said += [fill(out, topic, *computed), fill(out, topic, *computed)]
    fill(fresh, topic, *computed)
    for table in (*computed, DEMONSTRATED_RATES):
        assert rows_of(out, table.name) == rows_of(fresh, table.name), table.name
    days = rows_of(out, DEMONSTRATED_RATES.name)["date"].unique()
    assert len(days) > 2
    line = (
        f"{out} was written by an earlier release and lacks the table demonstrated_rates: this job"
        " computes it from all rows of intervals."
    )
    assert [line in text for text in said] == [False, True, False]


def test_trap_spark_writes_int96_and_the_tables_do_not(midnights: Path) -> None:
    """INT96 has no statistics and no unit; ours are microseconds in UTC."""
    (file, *_) = table_files(DeltaTable(midnights / "intervals"))
    schema = pq.ParquetFile(midnights / "intervals" / file.path).schema
    minute = schema.column(schema.names.index("minute"))
    assert minute.physical_type == "INT64"
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(minute.logical_type)


def test_trap_files_read_without_base_path_have_no_partition_values(
    session: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path, rows_around_midnights()[0])
    files = table_files(DeltaTable(tmp_path / BRONZE_SAMPLES.name))
    frame = read_files(session, str(tmp_path), BRONZE_SAMPLES, files)
    assert frame.where("date is null or hour is null or kind is null").count() == 0
    kinds = {row.kind for row in frame.select("kind").distinct().collect()}
    assert kinds == {"batch", "subscription", "topic", "limiter"}


def test_trap_the_first_batch_must_have_the_declared_schema(
    session: SparkSession, tmp_path: Path
) -> None:
    """A writer takes columns by name, not by place, and casts what has another width."""
    ensure_all(tmp_path)
    frame = session.createDataFrame(
        [(7, "subscription", 10, date(2025, 11, 21))], "acked int, kind string, hour int, date date"
    )
    columns = [
        F.col(c.name) if c.name in frame.columns else F.lit(None).cast(c.type.value).alias(c.name)
        for c in reversed(INTERVALS.columns)
    ]
    frame.select(*columns).write.format(FORMAT).mode("append").options(
        root=str(tmp_path), table=INTERVALS.name
    ).save()
    assert rows_of(tmp_path, "intervals")["acked"].to_pylist() == [7]


def test_tasks_read_the_rows_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    """As they do where the tables are in S3; also of a file without a column that came since."""
    wanted = bronze([m for _ in range(30) for m in Broker(situations=SITUATIONS[:3]).window(2)])
    old_table(tmp_path, BRONZE_SAMPLES, [wanted.column_names[-1]], wanted)
    append(tmp_path, wanted)
    files = table_files(ensure_table(str(tmp_path), BRONZE_SAMPLES))
    by_tasks = object_rows(spark, str(tmp_path), BRONZE_SAMPLES, files)
    # Spark puts columns of the partition behind the others.
    by_spark = read_files(spark, str(tmp_path), BRONZE_SAMPLES, files).select(by_tasks.columns)
    wanted_types = [(field.name, field.dataType) for field in table_schema(BRONZE_SAMPLES)]
    for frame in (by_tasks, by_spark):
        assert [(field.name, field.dataType) for field in frame.schema] == wanted_types
    assert same_rows(by_tasks.toArrow(), by_spark.toArrow())
    assert by_tasks.count() == 2 * wanted.num_rows


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    return sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist()))


def test_a_folder_may_be_named_like_a_pattern(session: SparkSession, tmp_path: Path) -> None:
    for name in ("x1", "x{1,2} [a]?*#:%"):
        root = str(tmp_path / name)
        for player in (Broker(), Broker(boot="boot-2")):
            written = write_tables(root, "0", [(BRONZE_SAMPLES.name, bronze(player.window(10)))])
            commit_append(root, BRONZE_SAMPLES, written, None)
    live = table_files(ensure_table(root, BRONZE_SAMPLES))
    rows = read_files(session, root, BRONZE_SAMPLES, live)
    assert rows.count() == sum(file.rows for file in live) > 0
    assert all("/x1/" not in path for path in rows.inputFiles())


def test_tables_are_on_this_machine_whatever_the_default_file_system_is(
    session: SparkSession, tmp_path: Path
) -> None:
    """A cluster's ``fs.defaultFS`` is HDFS, to which a path without a scheme would belong."""
    topic, root = Topic(tmp_path / "topic"), str(tmp_path / "tables")
    topic.publish(Broker().window(10))
    ensure_all(Path(root))
    frame = session.readStream.schema(MESSAGE_SCHEMA).parquet(f"file://{topic.folder}")
    session.conf.set("fs.defaultFS", "hdfs://127.0.0.1:1")
    try:
        checkpoint = str(tmp_path / "checkpoint")
        start_query(frame, root, checkpoint, trigger_s=None).awaitTermination()
        live = table_files(ensure_table(root, BRONZE_SAMPLES))
        rows = read_files(session, root, BRONZE_SAMPLES, live)
        assert rows.count() == sum(file.rows for file in live) > 0
    finally:
        session.conf.unset("fs.defaultFS")
