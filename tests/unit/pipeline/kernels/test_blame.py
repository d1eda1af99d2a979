"""Blame can be summed; bystander limiters count for the consumer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headgate.flow.account.verdict import Verdict
from headgate.flow.account.verdict import blamed_shares as blamed_shares_of_one
from headgate.pipeline.kernels.blame import (
    BLAME_INPUT,
    LIMITERS,
    WEIGHT_INPUT,
    blamed_s,
    blamed_shares,
    weight_s,
)
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION, BLAMES, SHARE_COLUMNS
from tests.unit.pipeline.play import S

SCHEMA = pa.schema([table_arrow_schema(ATTRIBUTION).field(name) for name in BLAME_INPUT])
SHARES = dict(zip(SHARE_COLUMNS, (0.05, 0.1, 0.05, 0.2, 0.25, 0.3, 0.05), strict=True))


def blamed(**row: Any) -> dict[str, float]:
    given = {"verdict": "CONSUMER", "second": None, "bystander": False} | SHARES | row
    found = blamed_shares(pa.Table.from_pylist([given], schema=SCHEMA))
    shares = {blame: share[0].as_py() for blame, share in found.items()}
    assert sum(shares.values()) == pytest.approx(1)
    return shares


def test_shares_of_a_plain_backlog_are_unchanged() -> None:
    expected = dict(zip(BLAMES, SHARES.values(), strict=True))
    assert blamed() == blamed(bystander=None) == expected
    # Named second, and to blame.
    assert blamed(second="THROTTLED_TOPIC") == expected


@pytest.mark.parametrize("limiter", LIMITERS)
def test_the_time_of_a_bystander_limiter_counts_for_the_consumer(limiter: str) -> None:
    expected = dict(zip(BLAMES, SHARES.values(), strict=True))
    expected["CONSUMER"] += expected.pop(limiter)
    assert blamed(second=limiter, bystander=True) == expected | {limiter: 0}


def test_without_a_backlog_no_cause_is_to_blame() -> None:
    nobody = dict.fromkeys(BLAMES, 0.0) | {"NONE": 1.0}
    assert blamed(verdict="NONE") == nobody
    assert blamed(verdict="NONE", second="THROTTLED_TOPIC", bystander=True) == nobody


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("second", [None, *LIMITERS])
@pytest.mark.parametrize("bystander", [False, True])
def test_arrays_follow_the_scalar_law(
    verdict: Verdict, second: str | None, bystander: bool
) -> None:
    own = {Verdict(blame): share for blame, share in zip(BLAMES, SHARES.values(), strict=True)}
    named = None if second is None else Verdict(second)
    found = blamed_shares_of_one(own, verdict, named, bystander=bystander)
    assert blamed(verdict=verdict.value, second=second, bystander=bystander) == {
        blame.value: share for blame, share in found.items()
    }


def test_batches_as_well_as_tables() -> None:
    batch = pa.RecordBatch.from_pylist(
        [{"verdict": "NONE", "second": None, "bystander": False} | SHARES], schema=SCHEMA
    )
    assert blamed_shares(batch)["NONE"].to_pylist() == [1.0]


def weighed(**row: Any) -> float:
    minute = {"from_ns": 0, "to_ns": 60 * S, "completeness": 1.0, "accounted_ns": None}
    schema = pa.schema([table_arrow_schema(ATTRIBUTION).field(name) for name in WEIGHT_INPUT])
    (found,) = weight_s(pa.Table.from_pylist([minute | row], schema=schema)).to_pylist()
    return float(found)


@pytest.mark.parametrize(
    ("row", "seconds"),
    [
        ({"accounted_ns": 60 * S}, 60),
        # One window in six was lost, and is in the account of the next.
        ({"completeness": 5 / 6, "accounted_ns": 60 * S}, 60),
        # The broker was down for 40 s: nobody is to blame for what nobody saw.
        ({"completeness": 1 / 3, "accounted_ns": 20 * S}, 20),
        # Written by an earlier version.
        ({"completeness": 0.5}, 30),
        # Beyond what a double has exactly, from telemetry that is wrong.
        ({"accounted_ns": 1 << 60}, (1 << 60) / S),
        ({"from_ns": -(1 << 60), "completeness": 1.0}, ((1 << 60) + 60 * S) / S),
    ],
)
def test_the_weight_of_a_minute_is_its_accounted_time(row: dict[str, Any], seconds: float) -> None:
    assert weighed(**row) == pytest.approx(seconds)


def test_seconds_of_blame_add_up_to_the_account() -> None:
    names = (*BLAME_INPUT, *WEIGHT_INPUT)
    row = {"verdict": "CONSUMER", "second": "THROTTLED_TOPIC", "bystander": True} | SHARES
    row |= {"from_ns": 0, "to_ns": 60 * S, "completeness": 0.5, "accounted_ns": 40 * S}
    schema = pa.schema([table_arrow_schema(ATTRIBUTION).field(name) for name in names])
    found = blamed_s(pa.Table.from_pylist([row], schema=schema))
    assert found["CONSUMER"].to_pylist() == [pytest.approx(0.35 * 40)]
    assert sum(each[0].as_py() for each in found.values()) == pytest.approx(40)
