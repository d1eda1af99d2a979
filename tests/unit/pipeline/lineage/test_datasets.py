"""Data sets have the names that OpenLineage gives to files, buckets and topics."""

from __future__ import annotations

from pathlib import Path

from headgate.pipeline.lineage.datasets import DataSet, job_namespace, source_sets, table_set
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.tables.episodes import EPISODES


def test_tables_of_a_folder_and_of_a_bucket() -> None:
    assert table_set("/data/tables", EPISODES) == DataSet("file", "/data/tables/episodes", EPISODES)
    assert table_set("s3://bucket/a/b", EPISODES) == DataSet(
        "s3://bucket", "a/b/episodes", EPISODES
    )
    assert table_set("s3://bucket", EPISODES).name == "episodes"


def test_topics_of_all_brokers_or_the_scrapes(tmp_path: Path) -> None:
    urls = ("pulsar://one:6650", "pulsar://two:6650")
    web = ("http://one:8080", "http://two:8080")
    found = source_sets(SourceOptions("out", urls, web))
    assert [(each.namespace, each.name) for each in found] == [
        (url, "persistent://headgate/telemetry/samples") for url in urls
    ]
    scrapes = SourceOptions("out", scrapes=str(tmp_path / "a" / ".." / "b"))
    assert source_sets(scrapes) == (DataSet("file", str(tmp_path / "b")),)


def test_a_folder_is_the_namespace_of_its_jobs() -> None:
    assert job_namespace("/data/tables") == "file:///data/tables"
    assert job_namespace("s3://bucket/a") == "s3://bucket/a"
