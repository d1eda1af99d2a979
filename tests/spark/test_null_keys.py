"""The one join of DataFrames in the pipeline: a null of a key equals a null, and nothing else.

``tests/tidy/test_joins.py`` holds that there is no other.
"""

from __future__ import annotations

from itertools import product

import pytest
from pyspark.sql import SparkSession

from headgate.pipeline.steps.joins import left_join

KEY = ("cluster", "topic", "partition")
KEYS = list(product((None, "", "c"), (None, "t"), (None, 0, 1)))


@pytest.mark.parametrize("broadcast", [False, True])
def test_rows_with_nulls_in_their_keys_find_each_other(
    spark: SparkSession, *, broadcast: bool
) -> None:
    schema = "cluster string, topic string, partition int"
    # Twice each on the left; every second key on the right.
    left = [(*key, n) for n, key in enumerate([*KEYS, *KEYS])]
    right = {key: n for n, key in enumerate(KEYS) if n % 2}
    found = left_join(
        spark.createDataFrame(left, f"{schema}, mine int"),
        spark.createDataFrame([(*key, n) for key, n in right.items()], f"{schema}, theirs int"),
        KEY,
        broadcast=broadcast,
    )
    assert found.columns == [*KEY, "mine", "theirs"]
    rows = sorted(found.collect(), key=lambda row: int(row.mine))
    assert [tuple(row) for row in rows] == [(*row, right.get(row[:3])) for row in left]
