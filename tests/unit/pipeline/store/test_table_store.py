"""Tables in a folder and in a bucket; S3 itself is tested in peer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

from headgate.base.errors import InputError
from headgate.pipeline.store.table_store import (
    S3Access,
    TableStore,
    os_error_text,
    s3_access,
    s3_objects,
    store_of,
)

ENVIRONMENT = (
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
)


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


def test_the_environment_says_how_s3_is_reached() -> None:
    assert s3_access({}) == S3Access()
    assert s3_access({"AWS_DEFAULT_REGION": "eu", "AWS_ENDPOINT_URL": ""}) == S3Access(None, "eu")
    both = {"AWS_REGION": "us", "AWS_DEFAULT_REGION": "eu"}
    assert s3_access(both).region == "us"
    urls = {"AWS_ENDPOINT_URL": "https://all", "AWS_ENDPOINT_URL_S3": "http://s3:9000"}
    assert s3_access(urls).endpoint == "http://s3:9000"
    assert s3_access(urls).allows_http
    assert not s3_access({"AWS_ENDPOINT_URL": "https://all"}).allows_http


@pytest.mark.parametrize("url", ["minio:9000", "ftp://a", "http://", "http://me:hush@a"])
def test_an_endpoint_that_is_no_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InputError, match="AWS_ENDPOINT_URL is no URL of a host") as caught:
        s3_access({"AWS_ENDPOINT_URL": url})
    assert "hush" not in str(caught.value)


@pytest.mark.usefixtures("no_environment")
def test_a_bucket_store_makes_no_request_and_shows_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    store = store_of("s3://tables/a/b/")
    assert store.is_object_store
    assert store.uri("intervals") == "s3://tables/a/b/intervals"
    assert store.path("intervals", "x.parquet") == "tables/a/b/intervals/x.parquet"
    assert store_of("s3://tables").path("intervals") == "tables/intervals"
    assert store.files.region == "eu-west-1"
    options = store.storage_options
    assert options is not None
    assert options["aws_endpoint"] == "http://127.0.0.1:9"
    assert options["allow_http"] == "true"
    assert not {"AKIA", "hush"} & set(options.values())
    assert "hush" not in repr(store)


@pytest.mark.usefixtures("no_environment")
def test_unset_variables_keep_the_libraries_defaults() -> None:
    options = store_of("s3://tables").storage_options
    assert options is not None
    assert not {"aws_endpoint", "allow_http", "aws_region"} & set(options)


def test_another_scheme_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be in gs://"):
        store_of("gs://tables")


def test_files_of_a_folder(tmp_path: Path) -> None:
    store = store_of(str(tmp_path))
    assert (store.is_object_store, store.storage_options) == (False, None)
    assert store.names("none", or_none=True) == []
    with pytest.raises(FileNotFoundError):
        store.names("none")
    store.make_folder("b", "_delta_log")
    store.make_folder("a", "d=1")
    store.make_folder(".hidden", "_delta_log")
    (tmp_path / "b" / "_delta_log" / "0.json").write_text("ü", encoding="utf-8")
    (tmp_path / "file").touch()
    assert store.names() == [".hidden", "a", "b", "file"]
    assert store.tables() == ["b"]
    assert (store.is_table("b"), store.is_table("none")) == (False, False)
    (tmp_path / "b" / "_delta_log" / f"{3:020d}.checkpoint.parquet").touch()
    assert store.is_table("b")
    assert store.text("b", "_delta_log", "0.json") == "ü"
    written = tmp_path / "b" / "_delta_log" / "0.json"
    assert store.changed_ns("b", "_delta_log")["0.json"] == written.stat().st_mtime_ns
    assert store.present("b") == {
        "b/_delta_log/0.json",
        f"b/_delta_log/{3:020d}.checkpoint.parquet",
    }
    # What another job has deleted is no failure.
    store.delete(["b/_delta_log/gone.json", "b/_delta_log/0.json"])
    with pytest.raises(FileNotFoundError):
        store.text("b", "_delta_log", "0.json")


def test_the_log_of_a_table_names_no_file_elsewhere(tmp_path: Path) -> None:
    """Who writes a table must not read or delete other files as who keeps it in order."""
    victim = tmp_path / "victim.parquet"
    victim.touch()
    (tmp_path / "tables" / "bronze").mkdir(parents=True)
    store = store_of(str(tmp_path / "tables"))
    for name in ("bronze/../../victim.parquet", "../victim.parquet", "bronze/x/../../../victim"):
        with pytest.raises(InputError, match="not in its folder"):
            store.delete([name])
        with pytest.raises(InputError, match="not in its folder"):
            list(store.columns("bronze", [name], ["a"]))
    assert victim.exists()
    assert store.path("bronze", "a..b/..c.parquet").endswith("/bronze/a..b/..c.parquet")


def test_files_behind_a_link_are_none_of_a_table(tmp_path: Path) -> None:
    """A vacuum deletes what is there and is not used."""
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "thesis").touch()
    (tmp_path / "disk" / "date=2026-11-29").mkdir(parents=True)
    (tmp_path / "disk" / "date=2026-11-29" / "a.parquet").touch()
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "bronze").symlink_to(tmp_path / "disk")  # a whole table may be elsewhere
    (tmp_path / "disk" / "date=2026-11-28").symlink_to(tmp_path / "documents")
    store = store_of(str(tmp_path / "tables"))
    assert store.present("bronze") == {"bronze/date=2026-11-29/a.parquet"}
    with pytest.raises(OSError, match="none"):
        store.present("none")


def test_messages_have_the_root_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = store_of("tables")
    assert store.uri("intervals") == "tables/intervals"
    assert store.path("intervals") == str(tmp_path / "tables/intervals")


@pytest.mark.parametrize("options", [None, {}], ids=["folder", "bucket"])
def test_columns_of_files_come_in_the_order_of_the_files(
    tmp_path: Path, options: dict[str, str] | None
) -> None:
    store = TableStore("s3://t", fs.LocalFileSystem(), str(tmp_path), options)
    (tmp_path / "t").mkdir()
    names = [f"{i}.parquet" for i in range(40)]
    for i, name in enumerate(names):
        pq.write_table(pa.table({"a": [i], "b": ["x"]}), tmp_path / "t" / name)
    read = list(store.columns("t", names, ["a"]))
    assert [rows.to_pydict() for rows in read] == [{"a": [i]} for i in range(40)]


def test_a_dataset_has_the_columns_of_its_schema(tmp_path: Path) -> None:
    store = store_of(str(tmp_path))
    (tmp_path / "t" / "d=1").mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t" / "d=1" / "x.parquet")
    schema = pa.schema([("d", pa.int32()), ("a", pa.int64()), ("late", pa.string())])
    rows = store.dataset("t", ["d=1/x.parquet"], schema, ["d"]).to_table()
    assert rows.to_pylist() == [{"d": 1, "a": 1, "late": None}]
    assert rows.schema.types == schema.types


def test_without_the_library_for_s3_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "headgate.pipeline.store.s3_objects", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(InputError, match=r"headgate\[s3\]"):
        s3_objects()


def test_a_refusal_is_one_line() -> None:
    assert os_error_text(FileNotFoundError(2, "Cannot list directory '/x'. Detail: ...")) == (
        "No such file or directory"
    )
    said = "When listing in bucket 'b': AWS Error NO_SUCH_BUCKET: not there (Request ID: x7)\nmore"
    assert (
        os_error_text(OSError(said))
        == "When listing in bucket 'b': AWS Error NO_SUCH_BUCKET: not there"
    )
    assert os_error_text(OSError()) == "no reason given"


def test_a_process_that_only_commits_loads_no_pandas() -> None:
    """Spark starts such a process for each write; pandas would be half of what it loads."""
    script = "import sys, headgate.pipeline.source.data_source; print('pandas' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
