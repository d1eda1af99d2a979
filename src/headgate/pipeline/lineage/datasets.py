"""The data sets of a job by OpenLineage's names: tables, telemetry topics, scrapes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headgate.pipeline.location import bucket_and_prefix, is_object_store
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.tables.columns import Table

FILES: Final = "file"
"""Namespace of folders of a file system, by OpenLineage's naming."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set that a job reads or writes."""

    namespace: str
    name: str
    table: Table | None = None
    """The table, if it is one: its declaration is the schema."""


def table_set(root: str, table: Table) -> DataSet:
    """A table of a resolved folder of tables."""
    if not is_object_store(root):
        return DataSet(FILES, f"{root}/{table.name}", table)
    bucket, prefix = bucket_and_prefix(root)
    return DataSet(f"s3://{bucket}", "/".join(filter(None, (prefix, table.name))), table)


def source_sets(source: SourceOptions) -> tuple[DataSet, ...]:
    """What a job reads: a telemetry topic of each broker, or the folder of files."""
    if source.folder is not None:
        return (DataSet(FILES, str(Path(source.folder).resolve())),)
    return tuple(DataSet(url, source.topic) for url in source.broker_urls)


def job_namespace(root: str) -> str:
    """The namespace of the jobs of a resolved folder of tables."""
    return root if is_object_store(root) else f"file://{root}"
