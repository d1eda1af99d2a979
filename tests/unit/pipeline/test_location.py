"""Allowed locations of tables; errors never repeat a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.location import (
    bucket_and_prefix,
    checked_root,
    is_object_store,
    local_url,
    resolved_root,
)


@pytest.mark.parametrize(
    "root", ["tables", "/t/a b", "50%", "a#b", "./gs://x", "s3://tables", "s3://tables/a/b/"]
)
def test_paths_and_prefixes_in_buckets_are_allowed(root: str) -> None:
    assert checked_root(root) == root
    assert is_object_store(root) == root.startswith("s3:")


@pytest.mark.parametrize(
    ("root", "said"),
    [
        ("gs://b/p", "cannot be in gs://...: a path or s3://BUCKET/PREFIX is allowed"),
        ("gs://b/p", "need a lock, and gs:// has none in Headgate"),
        ("hdfs://n:1/p", "cannot be in hdfs://"),
        ("hdfs://n:1/p", "need a lock, and hdfs:// has none in Headgate"),
        ("ABFS://n/p", "need a lock, and abfs:// has none in Headgate"),
        ("ftp://n/p", "cannot be in ftp://...: a path or s3://BUCKET/PREFIX is allowed"),
        ("file:///t", "cannot be in file://"),
        ("file:///t", "write the path without file://"),
        ("S3://b/p", "cannot be in S3://"),
        ("s3a://b/p", "Spark's s3a:// is s3:// here"),
        ("s3://", "'' is no name of a bucket"),
        ("s3:///p", "'' is no name of a bucket"),
        ("s3://Tables", "'Tables' is no name of a bucket"),
        ("s3://tables//a", "'/a' is no prefix in a bucket"),
        ("s3://tables/../a", "is no prefix in a bucket"),
        ("s3://tables/a?versionId=1", "is no prefix in a bucket"),
        ("s3://tables/a#b", "is no prefix in a bucket"),
        ("s3://tables/a/50%", "is no prefix in a bucket"),
    ],
)
def test_anything_else_is_refused_with_what_is_allowed(root: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_root(root)
    assert said in str(caught.value)
    assert "s3://BUCKET/PREFIX" in str(caught.value)


@pytest.mark.parametrize("root", ["s3://AKIA:hush@tables/a", "gs://user:hush@b", "s3://hush@b"])
def test_keys_in_a_url_are_refused_and_not_repeated(root: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_root(root)
    assert "hush" not in str(caught.value)
    assert "AKIA" not in str(caught.value)


def test_spark_reads_a_path_of_this_machine_with_its_scheme() -> None:
    assert local_url("/t/a b/[x] é#?") == "file:///t/a b/[x] é#?"
    assert local_url("tables") == f"file://{Path.cwd()}/tables"


def test_percent_escapes_are_refused() -> None:
    with pytest.raises(InputError, match="tables cannot be in /t/x%41y: '%41' in a path"):
        checked_root("/t/x%41y")


def test_a_root_is_the_same_from_every_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolved_root("t/../tables") == str(tmp_path.resolve() / "tables")
    assert resolved_root("s3://tables/a//".rstrip("/")) == "s3://tables/a"
    assert resolved_root("s3://tables/a/") == "s3://tables/a"
    with pytest.raises(InputError, match="cannot be in gs://"):
        resolved_root("gs://b")


def test_bucket_and_prefix_of_a_root() -> None:
    assert bucket_and_prefix("s3://tables") == ("tables", "")
    assert bucket_and_prefix("s3://tables/a/b/") == ("tables", "a/b")
