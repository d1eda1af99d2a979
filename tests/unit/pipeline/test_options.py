"""Options are checked before anything is started."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.access_options import AccessOptions
from headgate.pipeline.options import (
    AttributeOptions,
    CompactOptions,
    FolderOptions,
    ReportOptions,
    SourceOptions,
    StreamOptions,
)


def test_defaults_are_the_standard_ports() -> None:
    source = SourceOptions("tables")
    assert source.broker_urls == ("pulsar://127.0.0.1:6650",)
    assert source.web_urls == ("http://127.0.0.1:8080",)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"out": ""}, "--out is empty"),
        ({"out": "gs://b/t"}, "cannot be in gs://"),
        ({"out": "s3://b"}, "'b' is no name of a bucket"),
        ({"out": "s3://tables", "work": "s3://tables/w"}, "is no folder of this machine"),
        ({"topic": "a/b"}, "--topic: Invalid topic name 'a/b': domain://tenant/namespace/topic, "),
        ({"work": "hdfs://w"}, "cannot be in hdfs://"),
        (
            {"broker_urls": ("pulsar://a:1", "pulsar://b:1")},
            "is given for 2 and --admin-url for 1: every",
        ),
        ({"broker_urls": (), "web_urls": ()}, "--broker-url is given for 0"),
        (
            {"broker_urls": ("http://a:1",)},
            "--broker-url 'http://a:1': pulsar://HOST:PORT or",
        ),
        ({"web_urls": ("nonsense",)}, "--admin-url 'nonsense': http://HOST:PORT or https:"),
        ({"web_urls": ("http://a:0",)}, "such as http://localhost:8080$"),
        ({"broker_urls": ("pulsar://a:99999",)}, "--broker-url 'pulsar://a:99999'"),
        ({"broker_urls": ("pulsar://a:1/b",)}, "--broker-url 'pulsar://a:1/b'"),
        ({"broker_urls": ("pulsar://a:1,:2",)}, "--broker-url 'pulsar://a:1,:2'"),
        ({"broker_urls": ("pulsar://[::1",)}, r"--broker-url 'pulsar://\[::1'"),
    ],
)
def test_a_wrong_source_is_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        SourceOptions(**{"out": "tables", **values})


def test_one_error_lists_all_faults_of_a_source() -> None:
    with pytest.raises(InputError) as caught:
        SourceOptions("", ("a:1", "b"), ("http://",), access=AccessOptions(allow_insecure=True))
    assert [line.split()[0] for line in str(caught.value).splitlines()] == [
        "--out", "--broker-url", "--broker-url", "--broker-url", "--admin-url",
        "--tls-trust-cert-path,",
    ]  # fmt: skip


@pytest.mark.parametrize("url", ["pulsar://a", "pulsar+ssl://a:1,b:2", "pulsar://[::1]:6650/"])
def test_good_broker_urls(url: str) -> None:
    assert SourceOptions("tables", broker_urls=(url,)).broker_urls == (url,)


def test_wrong_format_and_trigger_are_refused() -> None:
    source = SourceOptions("tables")
    for kind in (AttributeOptions(source), FolderOptions("tables")):
        with pytest.raises(InputError, match="--format 'xml': table, json or csv is allowed"):
            dataclasses.replace(kind, format="xml")
    for trigger_s in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(
            InputError, match=r"^--trigger .*: seconds from 0\.1 on are allowed, such as 5"
        ):
            StreamOptions(source, trigger_s)


def test_the_options_for_spark() -> None:
    plain = SourceOptions("tables")
    assert plain.source_options("pulsar://a:1", "http://a:2") == {
        "service.url": "pulsar://a:1",
        "admin.url": "http://a:2",
        "topic": plain.topic,
    }
    urls = {
        "broker_urls": ("pulsar+ssl://a:1", "pulsar://b:1"),
        "web_urls": ("https://a:2", "http://b:2"),
    }
    access = AccessOptions("token", "env:T", trust_path="/ca.pem", allow_insecure=True)
    secure = SourceOptions("tables", **urls, access=access)
    first, second = (
        secure.source_options(*pair)
        for pair in zip(secure.broker_urls, secure.web_urls, strict=True)
    )
    own = {"service.url", "admin.url", "topic"}
    assert first == access.source_options(is_tls=True) | {name: first[name] for name in own}
    assert second.keys() == own | {"authPluginClassName", "authParams"}


@pytest.mark.parametrize("top", [0, 51])
def test_the_lists_of_a_report_are_bounded(top: int) -> None:
    with pytest.raises(InputError, match=f"--count {top}: 1 to 50 is allowed"):
        ReportOptions("tables", top=top)


@pytest.mark.parametrize(
    ("values", "text"),
    [({"retain_days": 0}, "--retain 0: at"), ({"vacuum_hours": -1}, "--vacuum-hours -1: at")],
)
def test_housekeeping_times_are_bounded(values: dict[str, int], text: str) -> None:
    with pytest.raises(InputError, match=text):
        CompactOptions("tables", **values)  # type: ignore[arg-type]


def test_files_are_read_once_and_not_beside_scrapes() -> None:
    source = SourceOptions("tables", files="records")
    assert (AttributeOptions(source).source.folder, SourceOptions("t").folder) == ("records", None)
    with pytest.raises(InputError, match="--files and --no-read exclude each other"):
        AttributeOptions(source, reads=False)
    with pytest.raises(InputError, match="--files are read once"):
        StreamOptions(source)
    with pytest.raises(InputError, match="--scrapes and --files exclude each other"):
        SourceOptions("tables", files="records", scrapes="texts")


def test_scrapes_are_read_once() -> None:
    source = SourceOptions("tables", scrapes="texts")
    assert AttributeOptions(source).source.scrapes == "texts"
    with pytest.raises(InputError, match="--no-read exclude each other"):
        AttributeOptions(source, reads=False)
    with pytest.raises(InputError, match="a stream reads telemetry topics"):
        StreamOptions(source)


def test_tables_in_a_bucket() -> None:
    for kind in (FolderOptions, CompactOptions, SourceOptions):
        assert kind("s3://tables/a").out == "s3://tables/a"
        with pytest.raises(InputError, match="cannot be in gs://"):
            kind("gs://tables")
    assert ReportOptions("s3://tables/a", html="page.html").html == "page.html"
    with pytest.raises(InputError, match=r"s3://tables/a cannot hold the page; .*--html"):
        ReportOptions("s3://tables/a")
