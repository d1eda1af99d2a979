"""Jobs and readers over tables in S3 do what they do over a folder: alerts, upgrade, quality, the
reader for Spark users, and the leases that let jobs work beside each other."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.alerts.delivery import Reply
from headgate.pipeline.alerts.job import run_alerts
from headgate.pipeline.alerts.options import AlertOptions
from headgate.pipeline.options import RETAIN_DAYS_MIN, CompactOptions, UpgradeOptions
from headgate.pipeline.quality import Checked, begin_quality, check_tables
from headgate.pipeline.session import prepare_session
from headgate.pipeline.source.data_source import register
from headgate.pipeline.spark_failures import reason_of
from headgate.pipeline.store.delta_log import ensure_table, table_files
from headgate.pipeline.store.housekeeping.job import run_compact
from headgate.pipeline.store.lease import TableHeldError
from headgate.pipeline.store.lock_tokens import LockLostError
from headgate.pipeline.store.scan import TableScan, existing_tables
from headgate.pipeline.store.table_leases import fill_leases, housekeeping_lease
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from headgate.pipeline.tables.quality import QUALITY
from headgate.pipeline.upgrade.job import run_upgrade
from headgate.pipeline.upgrade.plan import upgrade_plan
from tests.peer.s3_folder import upload
from tests.peer.s3_tables import SOURCE_DIR, headgate, rows, taken_over
from tests.unit.pipeline.alerts.folder import NOW_NS, open_segment, segment, telemetry
from tests.unit.pipeline.alerts.test_quotas import LAST
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, quota_row, write
from tests.unit.pipeline.source.folder import append, minute_row, replace
from tests.unit.pipeline.test_quality import minute
from tests.unit.pipeline.test_quality import write as write_minutes
from tests.unit.pipeline.upgrade.old_tables import old_folder


def sent(root: str, work: Path, now_ns: int) -> tuple[list[Any], str]:
    """The requests of one run of ``alerts``, and what it said."""
    requests: list[Any] = []

    def post(url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        assert headers
        requests.append((url, json.loads(body)))
        return Reply(200)

    err = io.StringIO()
    options = AlertOptions(root, ("http://am:9093",), work=str(work))
    assert run_alerts(options, io.StringIO(), err, transport=post, wall_ns=lambda: now_ns)
    return requests, err.getvalue()


def test_alerts_are_those_of_a_folder(root: str, tmp_path: Path) -> None:
    """Backlogs with their begin in the hour before, quotas, failed checks; then their ends."""
    local = tmp_path / "local"
    telemetry(local)
    before = {"continues_after": True, "minutes": 5}
    begun = segment(T0 + 55 * MINUTE_NS, T0 + 60 * MINUTE_NS, **before)
    write(local, "episodes", [begun, open_segment(20, continues_before=True)])
    write(local, "quota_usage", [quota_row(LAST, NS + "full", to_ns=NOW_NS, seconds_to_breach=0.0)])
    begin_quality(str(local))
    upload(local, root)
    works = {root: tmp_path / "there", str(local): tmp_path / "here"}
    with fill_leases(root):
        there, here = (sent(out, work, NOW_NS) for out, work in works.items())
    assert there == here
    ((_, alerts),) = there[0]
    assert len(alerts) == 2
    ended = segment(NOW_NS, NOW_NS + 2 * MINUTE_NS, continues_before=True)
    telemetry(local, NOW_NS + 9 * MINUTE_NS)
    write(local, "episodes", [ended])
    upload(local, root)
    there, here = (sent(out, work, NOW_NS + 9 * MINUTE_NS) for out, work in works.items())
    assert there == here
    assert there[0]


def test_an_upgrade_is_that_of_a_folder(spark: SparkSession, root: str, tmp_path: Path) -> None:
    local = tmp_path / "local"
    old_folder(local)
    upload(local, root)
    files = len(store_of(root).names(INTERVALS.name))

    @contextmanager
    def started(*_: object) -> Iterator[SparkSession]:
        yield prepare_session(spark)

    def upgraded(out: str, **more: Any) -> tuple[str, str]:
        text, said = io.StringIO(), io.StringIO()
        run_upgrade(UpgradeOptions(out, **more), text, said, session=started)
        return text.getvalue(), said.getvalue()

    plan, said = upgraded(root, is_dry_run=True)
    assert plan == upgraded(str(local), is_dry_run=True)[0]
    assert "intervals            recompute 2 hours: replace 2 files (" in plan
    assert said.endswith("Nothing was changed.\n")
    assert len(store_of(root).names(INTERVALS.name)) == files
    with fill_leases(root), pytest.raises(TableHeldError):
        upgraded(root)
    for out in (root, str(local)):
        assert upgraded(out)[1].endswith(f"{out} is up to date (layout 1).\n")
        assert all(each.is_empty for each in upgrade_plan(out))
    assert existing_tables(root) == existing_tables(str(local))
    for name in existing_tables(root):
        assert rows(root, name) == rows(str(local), name), name
    assert TableScan(root, INTERVALS.name).row_count > 0


def test_quality_is_that_of_a_folder(root: str, tmp_path: Path) -> None:
    """The job that looks commits under its lease, and not without it."""
    local = tmp_path / "local"
    begin_quality(str(local))
    write_minutes(local, [minute(0), minute(1, confidence=7.0), minute(0, 11)])
    upload(local, root)
    with pytest.raises(LockLostError, match="not held by this process"):
        check_tables(root)
    with fill_leases(root):
        found = check_tables(root)
        assert found == check_tables(str(local))
        assert [row["expectation"] for row in found.failures] == ["values_in_range"]
        assert check_tables(root) == Checked()
    assert rows(root, QUALITY.name) == rows(str(local), QUALITY.name)
    write_minutes(local, [minute(0, confidence=0.5)])
    upload(local, root)
    with fill_leases(root):
        holder = taken_over(root, QUALITY.name)
        with pytest.raises(LockLostError, match=f"now held by {holder}"):
            check_tables(root)


COLUMNS = "hour,kind,minute,topic,completeness,msgs_in"


def read(session: SparkSession, root: str, **options: str) -> DataFrame:
    given = {"table": "intervals", "columns": COLUMNS} | options
    return session.read.format("headgate_tables").options(**given).load(root)


def test_a_session_reads_the_rows_versions_and_changes(
    spark: SparkSession, root: str, tmp_path: Path
) -> None:
    register(spark)
    local = tmp_path / "local"
    minutes = [minute_row(place, topic) for place in range(0, 120, 20) for topic in "ab"]
    append(local, [*minutes, minute_row(0, kind="subscription", subscription="s")])
    replace(local, [1], [minute_row(70, "c"), minute_row(80, "c")])
    upload(local, root)
    assert sorted(read(spark, root).collect()) == sorted(read(spark, str(local)).collect())
    assert read(spark, root, versionAsOf="1").count() == 13
    since = {"since": "2025-11-21T10:20:00Z", "kinds": "topic"}
    assert read(spark, root, **since).count() == 6
    late = read(spark, root, pushFilters="true").where("topic = 'b' AND msgs_in > 10")
    assert sorted(row.msgs_in for row in late.collect()) == [20, 40]
    for options, said in (
        ({"versionAsOf": "77"}, "option versionAsOf=77: table intervals has versions 0 to 2"),
        ({"table": "episodes", "columns": "topic"}, f"folder {root} has no table episodes"),
    ):
        with pytest.raises(PySparkException) as error:
            read(spark, root, **options).count()
        assert reason_of(str(error.value)).startswith(said)
        assert "hush" not in str(error.value)

    def changes() -> list[tuple[str, str, int]]:
        """All changes that the query has written after one more run."""
        stream = spark.readStream.format("headgate_tables").options(
            table="intervals", readChangeFeed="true", columns="topic,msgs_in"
        )
        query = (
            stream.load(root).coalesce(1).writeStream.format("parquet")
            .option("path", str(tmp_path / "rows"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )  # fmt: skip
        query.awaitTermination()
        written = spark.read.parquet(str(tmp_path / "rows")).collect()
        return sorted((row.change, row.topic, row.msgs_in) for row in written)

    first = changes()
    assert {change for change, _, _ in first} == {"new"}
    replace(local, [1], [minute_row(70, "c", msgs_in=7), *(minute_row(n, "c") for n in (80, 90))])
    upload(local, root)
    later = [change for change in changes() if change not in first]
    assert later == [("corrected", "c", 7), ("new", "c", 80)]


HOLD = """
import sys
from headgate.pipeline.store.table_leases import fill_leases
with fill_leases(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_jobs_beside_the_one_that_fills_the_tables(root: str, tmp_path: Path) -> None:
    """What may work beside a stream does; a second one that fills is refused in a sentence."""
    local = tmp_path / "local"
    for place in range(3):
        append(local, [minute_row(place)])
    telemetry(local)
    upload(local, root)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, root],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(SOURCE_DIR)},
    )  # fmt: skip
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            for command in (("upgrade",), ("run", "--scrapes", str(tmp_path))):
                (tmp_path / "1763719200000.prom").write_text("# nothing\n")
                done = headgate(*command, "--out", root)
                assert done.returncode == 2, done.stderr
                assert f"is being written by another job (process {holder.pid} on" in done.stderr
            run_compact(CompactOptions(root, vacuum=True, vacuum_hours=0), io.StringIO())
            assert len(table_files(store_of(root).delta(INTERVALS.name))) == 1
            with (
                housekeeping_lease(root, INTERVALS.name),
                pytest.raises(TableHeldError, match="its files are being merged or deleted"),
                housekeeping_lease(root, INTERVALS.name),
            ):
                pass
            with fill_leases(root, tables=[POLICY_BACKTEST.name]):
                ensure_table(root, POLICY_BACKTEST)
            requests, _ = sent(root, tmp_path / "work", NOW_NS)
            assert requests == []
            plan = io.StringIO()
            run_upgrade(UpgradeOptions(root, is_dry_run=True), plan, io.StringIO())
            assert "attribution          create the table\n" in plan.getvalue()
        finally:
            holder.communicate()
    # It has let go, and nothing waits for a minute.
    with fill_leases(root):
        assert TableScan(root, INTERVALS.name).row_count == 3


def test_old_hours_are_dropped_beside_the_job_that_fills_the_tables(
    root: str, tmp_path: Path
) -> None:
    local = tmp_path / "local"
    append(local, [minute_row(0), minute_row(70)])
    upload(local, root)
    with fill_leases(root):
        run_compact(CompactOptions(root, retain_days=RETAIN_DAYS_MIN), io.StringIO())
    assert TableScan(root, INTERVALS.name).row_count == 0
