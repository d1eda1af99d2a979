"""Joins with null-safe keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.one_task import everywhere


def left_join(
    rows: DataFrame, more: DataFrame, key: Sequence[str], *, broadcast: bool = False
) -> DataFrame:
    """All rows, with the other columns of ``more`` where the key is the same.

    Keys are null-safe: a topic without a partition matches one without. ``broadcast`` makes it
    a broadcast join: for a small ``more``.
    """
    right = more.select(
        *(F.col(name).alias(f"_{name}") for name in key),
        *(name for name in more.columns if name not in key),
    )
    same: list[Column] = [F.col(name).eqNullSafe(F.col(f"_{name}")) for name in key]
    joined = rows.join(everywhere(right) if broadcast else right, reduce(and_, same), "left")
    return joined.drop(*(f"_{name}" for name in key))


def rows_with_key_of(rows: DataFrame, more: DataFrame, key: Sequence[str]) -> DataFrame:
    """Those rows whose key is also one of ``more``."""
    right = more.select(*(F.col(name).alias(f"_{name}") for name in key)).distinct()
    same: list[Column] = [F.col(name).eqNullSafe(F.col(f"_{name}")) for name in key]
    return rows.join(right, reduce(and_, same), "left_semi")
