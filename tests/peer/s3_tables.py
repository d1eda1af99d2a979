"""Tables in S3: the rows of a folder, one writer, and nothing written by who is it no longer."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.base.errors import InputError
from headgate.pipeline import jobs
from headgate.pipeline.backtest.grid import parse_grid
from headgate.pipeline.backtest.job import run_backtest
from headgate.pipeline.options import (
    AttributeOptions,
    CompactOptions,
    ReportOptions,
    SourceOptions,
    StreamOptions,
)
from headgate.pipeline.output.show import ShowOptions, show
from headgate.pipeline.progress import Progress
from headgate.pipeline.queries.forecast_rows import forecast_rows
from headgate.pipeline.report.job import run_report
from headgate.pipeline.session import prepare_session
from headgate.pipeline.spark_failures import reason_of
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_replace,
    ensure_table,
    table_files,
)
from headgate.pipeline.store.delta_writer import FORMAT
from headgate.pipeline.store.housekeeping import compact
from headgate.pipeline.store.housekeeping import vacuum as vacuum_module
from headgate.pipeline.store.housekeeping.job import run_compact
from headgate.pipeline.store.housekeeping.log_cleanup import clean_log
from headgate.pipeline.store.housekeeping.vacuum import vacuum
from headgate.pipeline.store.lease import FREE, Lease, LeaseRenewal, take
from headgate.pipeline.store.lock_tokens import LockLostError, writer_options
from headgate.pipeline.store.parquet_files import TableFiles, write_tables
from headgate.pipeline.store.s3_objects import lease_object
from headgate.pipeline.store.scan import TableScan, existing_tables
from headgate.pipeline.store.table_leases import fill_leases, housekeeping_lease
from headgate.pipeline.store.table_store import LOG, store_of
from headgate.pipeline.streaming.query import ingest_batch
from headgate.pipeline.tables.arrow_types import conform, table_arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from headgate.pipeline.tables.schemas import MESSAGE_SCHEMA
from tests.spark.telemetry_topic import Topic
from tests.unit.pipeline.play import T0, Broker, S, bronze, play
from tests.unit.pipeline.store.test_lease import A, Time

SOURCE_DIR = Path(__file__).resolve().parents[2] / "src"
COMMAND_LIMIT_S = 120
"""Far more than a command may take to find out that there is nobody."""


def rows(root: str, table: str) -> list[str]:
    """Rows of a table without when they were written, in an order of their own."""
    scan = TableScan(root, table)
    names = [name for name in scan.schema.names if name != "run_at"]
    return sorted(map(repr, scan.rows(names).to_pylist()))


def judged(source: SourceOptions, topic: Topic, reads: bool) -> tuple[list[dict[str, Any]], str]:
    """What ``attribute`` finds, and prints."""
    out = io.StringIO()
    asked = AttributeOptions(source, format="json", reads=reads)
    found = jobs.run_attribute(asked, out, io.StringIO(), messages=topic.stream)
    return found, out.getvalue()


def shown(root: str, table: str) -> str:
    """What ``show`` prints of the columns that matter."""
    out = io.StringIO()
    show(ShowOptions(root, table, limit=7), out, io.StringIO())
    return out.getvalue()


def test_tables_are_those_of_a_folder(spark: SparkSession, root: str, tmp_path: Path) -> None:
    """Row by row: after a first run, a second that adds, a judgement, and tidying up."""
    topic, local = Topic(tmp_path / "topic"), str(tmp_path / "local")
    there = SourceOptions(root, work=str(tmp_path / "work"))
    here = SourceOptions(local)
    first = Broker(start_ns=T0 + 3_550 * S)
    for messages in (
        [b"no telemetry", *(m for _ in range(20) for m in first.window(5))],
        Broker(start_ns=T0 + 3_660 * S, boot="boot-2").window(10),
    ):
        topic.publish(messages)
        for source in (there, here):
            jobs.run_once(source, io.StringIO(), messages=topic.stream)
    assert existing_tables(root) == existing_tables(local)
    counts = {name: TableScan(root, name).row_count for name in existing_tables(root)}
    assert counts["bronze_quarantine"] == 1
    assert counts["attribution"] > 0
    for name in counts:
        assert rows(root, name) == rows(local, name), name
    versions = [store_of(root).delta(name).version() for name in counts]
    assert judged(there, topic, reads=True) == judged(here, topic, reads=False)
    assert [store_of(root).delta(name).version() for name in counts] == versions

    files = len(table_files(store_of(root).delta("bronze_samples")))
    err = io.StringIO()
    run_compact(CompactOptions(root, vacuum=True, vacuum_hours=0), err)
    assert "Compacting bronze_samples" in err.getvalue()
    assert len(table_files(store_of(root).delta("bronze_samples"))) < files
    for name in counts:
        assert rows(root, name) == rows(local, name), name
    # What was put together is rewritten in another order, so of the columns shown alone.
    assert shown(root, "evictions") == shown(local, "evictions")
    assert shown(root, "attribution").splitlines()[0] == shown(local, "attribution").splitlines()[0]
    page = tmp_path / "page.html"
    run_report(ReportOptions(root, html=str(page)), io.StringIO())
    assert page.stat().st_size > 1_000
    assert forecast_rows(prepare_session(spark), root, None) == []
    found = lease_object(root, BRONZE_SAMPLES.name).read()
    assert found is not None
    assert found.lease == FREE


def test_a_stream_and_a_backtest(spark: SparkSession, root: str, tmp_path: Path) -> None:
    """A stream that goes on beside what it wrote, and another policy played on its bronze."""
    topic, local, said = Topic(tmp_path / "topic"), str(tmp_path / "local"), io.StringIO()
    first, second = play(30), Broker(start_ns=T0 + 30 * S, boot="boot-2").window(10)
    topic.publish(first)

    def both(session: SparkSession) -> DataFrame:
        topic.publish(second)
        frame = session.readStream.schema(MESSAGE_SCHEMA).option("maxFilesPerTrigger", 1)
        return frame.parquet(str(topic.folder))

    asked = StreamOptions(SourceOptions(root, work=str(tmp_path / "work")), trigger_s=0.1)
    jobs.run_stream(asked, said, messages=both, should_stop=lambda: "batch 1:" in said.getvalue())
    jobs.run_once(SourceOptions(local), io.StringIO(), messages=topic.stream)
    for name in existing_tables(local):
        assert rows(root, name) == rows(local, name), name

    grid = parse_grid('[[points]]\nname = "limit"\npublish = { messages_per_s = 5 }\n')
    session, found = prepare_session(spark), []
    for place in (root, local):
        with fill_leases(place, tables=[POLICY_BACKTEST.name]):
            points = run_backtest(session, place, grid, None, None, "a", Progress(io.StringIO()))
        found.append((points, rows(place, POLICY_BACKTEST.name)))
    assert found[0] == found[1]
    assert found[0][1]


HOLD = """
import sys
from headgate.pipeline.store.table_leases import fill_leases
with fill_leases(sys.argv[1], tables=["intervals"]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_refused_until_the_first_is_dead_for_a_lease(root: str) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, root],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(SOURCE_DIR)},
    )  # fmt: skip
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        said: list[str] = []
        # It renews its hold by itself, in its own time.
        with (
            pytest.raises(InputError, match=rf"another job \(process {holder.pid} on"),
            fill_leases(root, said.append, tables=[INTERVALS.name]),
        ):
            pass
        assert f"process {holder.pid}" in said[0]
        # It is killed, not told to end, and what it held stays as it is.
        holder.kill()
        holder.wait()
    lock, time = lease_object(root, INTERVALS.name), Time()
    tag = take(lock, A, monotonic=time.monotonic, wait=time.wait)
    assert time.now_s == 60.0
    LeaseRenewal(lock, A, tag).release()
    with fill_leases(root):
        assert writer_options(root)["lock"]


def taken_over(root: str, name: str) -> Lease:
    """Let another job take a lease, as it may when one has expired."""
    lock = lease_object(root, name)
    found = lock.read()
    assert found is not None
    assert lock.swap(A, found.tag) is not None
    return A


def hour_files(root: str, hour: int, appended: int) -> list[Any]:
    """A file of ``intervals`` with one row."""
    schema = table_arrow_schema(INTERVALS)
    columns = {
        "date": pa.array([T0 // (24 * HOUR_NS)], pa.int32()).cast(pa.date32()),
        "hour": pa.array([hour], pa.int32()),
        "kind": pa.array(["subscription"]),
        "appended": pa.array([appended]),
    }
    return write_tables(root, "0", [(INTERVALS.name, conform(columns, schema, 1))])


def test_who_has_lost_the_lock_commits_nothing(
    spark: SparkSession, root: str, tmp_path: Path
) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "metadata").write_text('{"id":"1-2-3"}')
    topic = Topic(tmp_path / "topic")
    topic.publish(play(3))
    messages = prepare_session(spark).read.parquet(str(topic.folder))
    with fill_leases(root):
        ensure_table(root, BRONZE_SAMPLES)
        ingest_batch(messages, 0, root, str(tmp_path / "checkpoint"))
        before = TableScan(root, BRONZE_SAMPLES.name).row_count
        holder = taken_over(root, BRONZE_SAMPLES.name)
        # The writer commits in a process of its own.
        with pytest.raises(PySparkException) as caught:
            ingest_batch(messages, 1, root, str(tmp_path / "checkpoint"))
        assert f"is now held by {holder}" in reason_of(str(caught.value))
        assert "hush" not in str(caught.value)
        with pytest.raises(LockLostError, match="now held by process 7 on host-a"):
            commit_append(root, BRONZE_SAMPLES, [], AppTransaction("a", 1))
    assert before > 0
    assert TableScan(root, BRONZE_SAMPLES.name).row_count == before
    assert existing_tables(root) == (BRONZE_SAMPLES.name,)
    found = lease_object(root, BRONZE_SAMPLES.name).read()
    assert found is not None
    assert found.lease == holder


def test_nothing_is_written_without_the_lock(spark: SparkSession, root: str) -> None:
    with pytest.raises(LockLostError, match="not held by this process"):
        ensure_table(root, INTERVALS)
    rows = prepare_session(spark).createDataFrame([(b"x",)], "value binary")
    writer = rows.limit(0).write.format(FORMAT).mode("append").option("table", INTERVALS.name)
    with pytest.raises(PySparkException, match="not held by this process"):
        writer.option("root", root).option("hours", "[1]").save()


def test_a_late_commit_is_refused_even_with_the_lock(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the lock and the commit a job may be stopped for any time."""
    with fill_leases(root):
        ensure_table(root, INTERVALS)
        commit_append(root, INTERVALS, hour_files(root, 10, 1), None)
        delta = ensure_table(root, INTERVALS)
        stale, fresh = hour_files(root, 10, 2), hour_files(root, 10, 3)
        assert commit_replace(root, INTERVALS, fresh, [T0 // HOUR_NS], AppTransaction("a", 1))
        loaded = [delta]

        def load(*_: object) -> DeltaTable:
            """The stale version; then another job has the lease."""
            if loaded:
                return loaded.pop()
            taken_over(root, INTERVALS.name)
            return store_of(root).delta(INTERVALS.name)

        with monkeypatch.context() as patch:
            patch.setattr("headgate.pipeline.store.delta_log.ensure_table", load)
            with pytest.raises(LockLostError, match="now held by process 7 on host-a"):
                commit_replace(root, INTERVALS, stale, [T0 // HOUR_NS], None)
    read = store_of(root).delta(INTERVALS.name).to_pyarrow_table()
    assert read["appended"].to_pylist() == [3]


def test_an_answer_that_gets_lost_ends_nothing_and_doubles_nothing(
    root: str, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library asks again, and meets what it has written itself."""
    command = [sys.executable, str(Path(__file__).with_name("lossy_proxy.py")), s3]
    with (
        fill_leases(root),
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as proxy,
    ):
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        files = [hour_files(root, 10, value) for value in range(3)]
        try:
            with monkeypatch.context() as patch:
                patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{int(proxy.stdout.readline())}")
                for number, some in enumerate(files):
                    assert commit_append(root, INTERVALS, some, AppTransaction("a", number))
                assert commit_replace(root, INTERVALS, [], [0], AppTransaction("a", 3))
                compact.compact_table(root, INTERVALS.name)
        finally:
            proxy.stdin.close()
        lost = proxy.stdout.read().splitlines()
    versions = [f"{version:020d}.json 200" for version in range(6)]
    assert [line.rpartition("/")[2] for line in lost][:6] == versions
    delta = store_of(root).delta(INTERVALS.name)
    assert sorted(delta.to_pyarrow_table()["appended"].to_pylist()) == [0, 1, 2]
    assert delta.transaction_version("a") == 3
    assert len(table_files(delta)) == 1


def test_what_was_begun_is_deleted_and_leaves_no_empty_folders(root: str) -> None:
    files = TableFiles(root, BRONZE_SAMPLES, "0")
    files.write(bronze(play(2)))
    files.abandon()
    store = store_of(root)
    assert store.files.get_file_info(fs.FileSelector(store.folder, allow_not_found=True)) == []


def test_a_file_of_several_parts_is_whole(root: str) -> None:
    store, part = store_of(root), bytes(range(256)) * (1 << 15)
    with store.files.open_output_stream(store.path("large")) as stream:
        for _ in range(3):
            stream.write(part)
    with store.files.open_input_stream(store.path("large")) as stream:
        assert stream.readall() == 3 * part


def test_the_log_is_shortened(root: str) -> None:
    with fill_leases(root), housekeeping_lease(root, INTERVALS.name):
        ensure_table(root, INTERVALS)
        for value in range(12):
            commit_append(root, INTERVALS, hour_files(root, 10, value), None)
            if value == 7:
                store_of(root).delta(INTERVALS.name).create_checkpoint()
        assert clean_log(root, INTERVALS.name, versions_kept=2, hours_kept=0) == 8
    names = store_of(root).names(INTERVALS.name, LOG)
    assert names[0] == f"{8:020d}.checkpoint.parquet"
    delta = DeltaTable(
        store_of(root).uri(INTERVALS.name),
        version=8,
        storage_options=store_of(root).storage_options,
    )
    assert delta.to_pyarrow_table().num_rows == 8


def test_a_second_vacuum_has_nothing_to_do(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log still tells of what the first one deleted."""
    monkeypatch.setattr(vacuum_module, "VERSIONS_KEPT", 1)
    with fill_leases(root):
        for value in range(4):
            files = hour_files(root, 10, value)
            commit_replace(root, INTERVALS, files, [T0 // HOUR_NS], None)
        names = [INTERVALS.name]
        assert len(vacuum(root, 1, True, filled_here=names)) == 0
        monkeypatch.setattr(vacuum_module, "UNKNOWN_HOURS_MIN", 0)
        for wanted in (3, 0):
            assert len(vacuum(root, 0, True)) == wanted
            assert len(vacuum(root, 0, False, filled_here=names)) == wanted
    parquet = [name for name in store_of(root).present(INTERVALS.name) if LOG not in name]
    assert len(parquet) == 1


def headgate(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the pipeline, bounded in time."""
    return subprocess.run(
        [sys.executable, "-m", "headgate.cli", "pipeline", *arguments],
        env=os.environ | {"PYTHONPATH": str(SOURCE_DIR)} | variables,
        capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("out", "variables", "said"),
    [
        ("s3://absent/t", {}, "The specified bucket does not exist"),
        ("s3://tables/t", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "Could not connect"),
        ("s3://tables/none", {}, "there is no folder s3://tables/none yet"),
    ],
)
def test_what_is_not_there_is_reported_in_a_sentence(
    out: str, variables: dict[str, str], said: str, tmp_path: Path
) -> None:
    commands = [("show", "intervals"), ("compact",)]
    if "none" not in out:
        work = str(tmp_path / "work")
        commands.append(("run", "--scrapes", str(tmp_path), "--work", work))
        (tmp_path / "1763719200000.prom").write_text("# nothing\n")
    for command in commands:
        done = headgate(*command, "--out", out, **variables)
        lines = done.stderr.strip().splitlines()
        assert (done.returncode, len(lines)) == (2, 1), done.stderr
        assert said in lines[0]
        assert "hush" not in done.stderr


def test_a_job_that_reads_topics_needs_a_folder_of_its_own(root: str) -> None:
    done = headgate("run", "--out", root)
    assert done.returncode == 2
    assert "--work" in done.stderr
    assert store_of(root).names(or_none=True) == []
