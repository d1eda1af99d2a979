"""Small work of Spark as one task: no shuffle, and no plan that is compiled.

A trigger of a stream computes a few minutes of each table. There a shuffle costs more than it
gains, because each of its tasks starts Python again, and so does code that Spark generates, because
Java compiles it anew for each other minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

ONE_TASK_ROWS_MAX: Final = 200_000
"""Rows up to which one task computes a table: some seconds of one core at most."""

_MARK: Final = "spark.headgate.oneTask"
"""A setting of the session, which is true inside :func:`one_task`."""

_SETTINGS: Final = {
    _MARK: "true",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Rows of both sides are in the same task; a broadcast would be a job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # There is no stage after which Spark could plan anew.
    "spark.sql.adaptive.enabled": "false",
}


@contextmanager
def one_task(session: SparkSession) -> Iterator[None]:
    """In the context, what is read, computed and written is one task of one job."""
    before = {name: session.conf.get(name, None) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, found in before.items():
            if found is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, found)


def is_one_task(session: SparkSession) -> bool:
    """Whether this is inside :func:`one_task`."""
    return session.conf.get(_MARK, "false") == "true"


def in_one_task(rows: DataFrame) -> DataFrame:
    """The rows, in one partition if this is inside :func:`one_task`."""
    return rows.coalesce(1) if is_one_task(rows.sparkSession) else rows


def together(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows, those with an equal ``key`` in one partition: a shuffle, but in one task."""
    return rows.coalesce(1) if is_one_task(rows.sparkSession) else rows.repartition(*key)


def everywhere(rows: DataFrame) -> DataFrame:
    """Few rows, which a join broadcasts; in one task they need not travel."""
    return rows if is_one_task(rows.sparkSession) else F.broadcast(rows)
