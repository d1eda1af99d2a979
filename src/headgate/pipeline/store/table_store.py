"""The files of the tables, in a folder of a file system or in a bucket of S3.

The environment says how S3 is reached, as for all tools of AWS. This module reads endpoint and
region once, because the three libraries below do not agree on them. Only the libraries read keys
and tokens, so no text of this module can show them.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from headgate.base.errors import InputError
from headgate.pipeline.failures import joined_causes
from headgate.pipeline.location import bucket_and_prefix, checked_root, is_object_store

if TYPE_CHECKING:
    import pyarrow.dataset as ds

CONNECT_TIMEOUT_S: Final = 5
REQUEST_TIMEOUT_S: Final = 30
"""Time limits of one request to S3, which is retried a few times."""
ATTEMPTS_MAX: Final = 5

LOG: Final = "_delta_log"
"""The folder in each table's folder that has its versions."""

_VERSION: Final = re.compile(r"\d{20}\.(json|checkpoint)")

T = TypeVar("T")

READ_AT_ONCE: Final = 16
"""Small files that are read in parallel: in S3 each takes three round trips."""


@dataclass(frozen=True, slots=True)
class S3Access:
    """How S3 is reached, without credentials."""

    endpoint: str | None = None
    """None for that of AWS."""
    region: str | None = None
    """None: the libraries' default."""

    @property
    def allows_http(self) -> bool:
        """Whether the endpoint is plain HTTP, without encryption."""
        return self.endpoint is not None and self.endpoint.startswith("http://")


def s3_access(environment: Mapping[str, str]) -> S3Access:
    """Endpoint and region from AWS's environment variables.

    Raises:
        InputError: the endpoint is no HTTP URL.
    """
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if endpoint and not re.fullmatch(r"https?://[^/@\s]+(/[^@\s]*)?", endpoint):
        raise InputError(
            "the variable AWS_ENDPOINT_URL is no URL of a host: http://HOST:PORT or https://HOST "
            "is allowed"
        )
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    return S3Access(endpoint or None, region or None)


@dataclass(frozen=True, slots=True)
class TableStore:
    """The files of the tables. A file is addressed by the names of its folders and its own."""

    root: str
    """The root as it was given, for messages."""
    files: Any
    """A ``pyarrow.fs.FileSystem``."""
    folder: str
    """The root in ``files``."""
    storage_options: dict[str, str] | None
    """Options of delta-rs for S3; None for a file system."""

    @property
    def is_object_store(self) -> bool:
        """Whether the tables are in S3, which has no folders."""
        return self.storage_options is not None

    def uri(self, *names: str) -> str:
        """The file's name in messages."""
        return "/".join((self.root, *names))

    def path(self, *names: str) -> str:
        """The file's path in ``files``.

        Raises:
            InputError: a name leads out of its folder. Names come from the log of a table, which
                others may have written.
        """
        for name in names:
            if ".." in name and ".." in name.split("/"):
                raise InputError(
                    f"{self.root}: the log of a table names the file {name[:80]!r}, which is not "
                    "in its folder"
                )
        return "/".join((self.folder, *names))

    def url(self, *names: str) -> str:
        """The file's URL, for libraries that decode ``%41`` and end a path at ``#``."""
        path = self.path(*names)
        return f"s3://{quote(path)}" if is_object_store(self.root) else Path(path).as_uri()

    def names(self, *names: str, or_none: bool = False) -> list[str]:
        """Names in a folder, sorted; with ``or_none`` an absent folder is empty.

        Raises:
            OSError: it is no folder, or cannot be read.
        """
        try:
            # An absent bucket raises another error, also with or_none.
            found = self.files.get_file_info(fs.FileSelector(self.path(*names)))
        except FileNotFoundError:
            if or_none:
                return []
            raise
        return sorted(info.base_name for info in found)

    def changed_ns(self, *names: str) -> dict[str, int]:
        """When each file of a folder was written, since the epoch, by its name.

        Raises:
            OSError: it is no folder, or cannot be read.
        """
        found = self.files.get_file_info(fs.FileSelector(self.path(*names)))
        return {info.base_name: info.mtime_ns for info in found}

    def tables(self) -> list[str]:
        """Names of the folders that have a log, sorted; a log may be empty.

        Raises:
            OSError: the folder cannot be read.
        """
        names = [name for name in self.names() if not name.startswith(".")]
        logs = self.files.get_file_info([self.path(name, LOG) for name in names])
        return [
            name for name, log in zip(names, logs, strict=True) if log.type == fs.FileType.Directory
        ]

    def is_table(self, name: str) -> bool:
        """Whether it has a version: a run that was killed may leave an empty log.

        Raises:
            OSError: the log cannot be read.
        """
        # The function of delta-rs holds Python's GIL while it waits for S3, and so blocks the
        # thread that renews the writer's lease.
        return any(_VERSION.match(found) for found in self.names(name, LOG, or_none=True))

    def has_version(self, name: str, version: int) -> bool:
        """Whether the log of a table has that version."""
        path = self.path(name, LOG, f"{version:020d}.json")
        return bool(self.files.get_file_info(path).type == fs.FileType.File)

    def version_mark(self, name: str, version: int) -> tuple[int, int] | None:
        """Size and time [ns] of the file of a version, which another table's version does not have;
        None if there is no such file."""
        info = self.files.get_file_info(self.path(name, LOG, f"{version:020d}.json"))
        return (info.size, info.mtime_ns) if info.type == fs.FileType.File else None

    def delta(self, name: str) -> DeltaTable:
        """A table at its newest version."""
        return DeltaTable(self.url(name), storage_options=self.storage_options)

    def text(self, *names: str) -> str:
        """A small file's text.

        Raises:
            FileNotFoundError: the file is absent.
        """
        with self.files.open_input_stream(self.path(*names)) as stream:
            return str(stream.readall().decode("utf-8"))

    def make_folder(self, *names: str) -> None:
        """Create a folder and its parents; in S3, nothing."""
        if not self.is_object_store:
            self.files.create_dir(self.path(*names), recursive=True)

    def present(self, table: str) -> set[str]:
        """The files in a table's folder, by their paths below the root, whatever its log tells.

        In a file system without those behind links below that folder: they may be of others.

        Raises:
            OSError: the folder cannot be read.
        """
        if not self.is_object_store:
            return {
                os.path.relpath(f"{folder}/{name}", self.folder)
                for folder, _, names in os.walk(self.path(table), onerror=_raise)
                for name in names
            }
        found = self.files.get_file_info(fs.FileSelector(self.path(table), recursive=True))
        start = len(self.folder) + 1 if self.folder else 0
        return {info.path[start:] for info in found if info.type == fs.FileType.File}

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files, by their paths below the root; one that is gone is deleted already."""
        if not self.is_object_store:
            for path in paths:
                with suppress(FileNotFoundError):
                    self.files.delete_file(self.path(path))
        elif paths:
            # pyarrow would leave an empty object for each parent folder.
            s3_objects().delete(self.root, paths)

    def columns(
        self, table: str, paths: Iterable[str], columns: Sequence[str]
    ) -> Iterator[pa.Table]:
        """Some columns of small Parquet files of a table, file by file, in the given order."""

        def read(path: str) -> pa.Table:
            file = pq.ParquetFile(self.path(table, path), filesystem=self.files)
            with file:
                return file.read(list(columns))

        yield from self.each(paths, read)

    def each(self, paths: Iterable[str], read: Callable[[str], T]) -> Iterator[T]:
        """What ``read`` finds in each file, in the given order; in S3 many at once."""
        if not self.is_object_store:
            yield from map(read, paths)
            return
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            yield from pool.map(read, paths)

    def dataset(
        self, table: str, paths: Iterable[str], schema: pa.Schema, partition_by: Iterable[str]
    ) -> ds.Dataset:
        """Files of a table as rows of ``schema``; a column that a file lacks is null."""
        # It imports pandas, half of what a Python process of Spark would otherwise load to commit.
        import pyarrow.dataset as ds

        return ds.dataset(
            [self.path(table, path) for path in paths],
            schema=schema,
            format="parquet",
            filesystem=self.files,
            partitioning=ds.partitioning(
                pa.schema([schema.field(name) for name in partition_by]), flavor="hive"
            ),
            partition_base_dir=self.path(table),
        )


def store_of(root: str) -> TableStore:
    """The store of the tables in ``root``. No request is made.

    Raises:
        InputError: it is neither a path nor ``s3://BUCKET/PREFIX``.
    """
    if is_object_store(checked_root(root)):
        return _in_bucket(root.rstrip("/"), s3_access(os.environ))
    return TableStore(str(Path(root)), _LOCAL, os.path.abspath(root), None)


def table_names(root: str) -> list[str]:
    """Names of a folder's tables, without one that a killed run left without a version."""
    store = store_of(root)
    return [name for name in store.tables() if store.is_table(name)]


def _raise(error: OSError) -> None:
    raise error


_LOCAL: Final = fs.LocalFileSystem()


@lru_cache(maxsize=16)
def _in_bucket(root: str, access: S3Access) -> TableStore:
    bucket, prefix = bucket_and_prefix(root)
    files = fs.S3FileSystem(
        region=access.region,
        endpoint_override=access.endpoint,
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=REQUEST_TIMEOUT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS_MAX),
        # One request for a small file instead of three.
        allow_delayed_open=True,
    )
    return TableStore(root, files, f"{bucket}/{prefix}".rstrip("/"), _storage_options(access))


def _storage_options(access: S3Access) -> dict[str, str]:
    options = {
        "connect_timeout": f"{CONNECT_TIMEOUT_S}s",
        "timeout": f"{REQUEST_TIMEOUT_S}s",
        "max_retries": str(ATTEMPTS_MAX),
        "retry_timeout": f"{REQUEST_TIMEOUT_S}s",
    }
    if access.endpoint is not None:
        options["aws_endpoint"] = access.endpoint
    if access.allows_http:
        options["allow_http"] = "true"
    if access.region is not None:
        options["aws_region"] = access.region
    return options


def s3_objects() -> Any:
    """The module :mod:`headgate.pipeline.store.s3_objects`, which only S3 needs.

    Raises:
        InputError: its library is not installed.
    """
    try:
        return importlib.import_module("headgate.pipeline.store.s3_objects")
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise InputError(
            "tables in S3 need the package obstore: pip install 'headgate[s3]'"
        ) from error


def os_error_text(error: OSError) -> str:
    """Why a read or write failed, in one line."""
    if error.errno is not None:
        return os.strerror(error.errno)
    return joined_causes(str(error)).partition("\n")[0] or "no reason given"
