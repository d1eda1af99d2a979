"""Which of two quotas a sentence is about; whole rows are compared in ``test_quota_usage``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headgate.pipeline.kernels.quota_forecast import METHODS, QuotaForecasts
from headgate.pipeline.kernels.quota_sentences import NO_QUOTA, QuotaArrays, quota_sentences
from headgate.pipeline.kernels.quota_usage import INPUT_COLUMNS
from headgate.pipeline.tables.arrow_types import arrow_schema
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.play import S

NAN = float("nan")


def quota(kind: str, **facts: list[Any]) -> QuotaArrays:
    """One type of quota in three minutes, not in force unless given otherwise."""
    given: dict[str, list[Any]] = {
        "in_force": [False] * 3,
        "likely_s": [NAN] * 3,
        "reached": [False] * 3,
        "use": [NAN] * 3,
        **facts,
    }
    likely_s, nan = np.array(given["likely_s"]), np.full(3, NAN)
    method = np.where(np.isnan(likely_s), METHODS.index("none"), METHODS.index("broker"))
    forecast = QuotaForecasts(
        np.array(given["in_force"]),
        nan,
        likely_s,
        nan,
        method.astype(np.int8),
        np.array(given["reached"]),
        np.array(given["reached"]),
    )
    use = np.array(given["use"])
    return QuotaArrays(kind, forecast, use, use, nan, likely_s, nan)


def table(**facts: Any) -> pa.Table:
    """Three minutes under a size quota of 10 B and a time quota of 60 s."""
    given = {"quota_size_limit_bytes": 10, "quota_time_limit_ns": 60 * S, **facts}
    schema = arrow_schema(tuple(INTERVALS.column(name) for name in INPUT_COLUMNS))
    row = {name: given.get(name) for name in INPUT_COLUMNS}
    return pa.Table.from_pylist([row] * 3, schema=schema)


def test_the_quota_that_breaks_first_is_named() -> None:
    size = quota("size", in_force=[True] * 3, use=[0.5, 0.5, NAN], likely_s=[60.0, 30.0, NAN])
    time = quota("time", in_force=[True] * 3, use=[0.4, 0.4, 0.4], likely_s=[30.0, 30.0, NAN])
    assert time.breaks_before(size).tolist() == [True, False, False]
    found = quota_sentences(table(), [size, time])
    assert [" time quota" in str(text) for text in found] == [True, False, True]


def test_a_reached_quota_goes_before_a_fuller_one() -> None:
    size = quota("size", in_force=[True] * 3, use=[0.99] * 3)
    time = quota("time", in_force=[True] * 3, use=[0.5] * 3, reached=[True] * 3)
    assert all(" time quota" in str(text) for text in quota_sentences(table(), [size, time]))


def test_without_a_quota_only_acts_are_told() -> None:
    none = [quota("size"), quota("time")]
    assert quota_sentences(table(), none) == [NO_QUOTA] * 3
    (held, *_) = quota_sentences(table(parked_backlog_quota_ns=3 * S), none)
    assert held == f"{NO_QUOTA}; sent messages were held for 3 s of this minute"
    unknown = [quota("size", in_force=[True] * 3), quota("time")]
    assert quota_sentences(table(), unknown) == [None] * 3
