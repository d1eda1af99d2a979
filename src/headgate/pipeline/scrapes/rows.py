"""Differences between two scrapes as rows of ``bronze_samples``: Arrow out.

A subject gets two rows, a stream of their own: one at the first scrape, from which it counts, and
one at the second. So rows depend on two texts alone, whichever others are read with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.base.units import NS_PER_MS
from headgate.pipeline.scrapes.differences import differences
from headgate.pipeline.scrapes.pairs import Difference, ScrapePair
from headgate.pipeline.scrapes.reading import Scrape
from headgate.pipeline.tables.arrow_types import (
    TIMESTAMP,
    conform,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES, INFERRED

INCARNATION: Final = 0
"""Series of topics do not say which incarnation of a name they are about."""

_NAMES: Final = frozenset(column.name for column in BRONZE_SAMPLES.columns)


SOURCE_PREFIX: Final = "scrape:"
"""What the names of telemetry streams begin with that are scrapes."""


def scrape_source(label: str) -> str:
    """The telemetry stream that the scrapes of a broker are."""
    return f"{SOURCE_PREFIX}{label}"


def batch_rows(label: str, scrape: Scrape, at_ns: int) -> pa.Table:
    """The row that says that a scrape was read."""
    cluster = next((name.cluster for name in scrape.topics), None)
    fixed = {
        "kind": BATCH_KIND,
        "boot_id": _boot(scrape, at_ns),
        "seq": at_ns // NS_PER_MS,
        "row": 0,
        "cluster": cluster,
        "evidence": INFERRED,
    }
    return _rows({**_header(label, at_ns, at_ns), **fixed}, {}, 1)


def pair_rows(pair: ScrapePair) -> Iterator[pa.Table]:
    """The rows of all subjects that both scrapes have, those of one kind together."""
    boot = _boot(pair.after, pair.before_ns)
    for kind, found in differences(pair):
        if not found:
            continue
        fixed = {
            **_header(pair.label, pair.before_ns, pair.after_ns),
            "kind": kind.value,
            "boot_id": boot,
            "incarnation": INCARNATION,
            "covered_from_ns": pair.before_ns,
            "gone": False,
        }
        sides = (
            (pair.before_ns, [difference.first for difference in found]),
            (pair.after_ns, [difference.second for difference in found]),
        )
        for at_ns, values in sides:
            own = {"covered_to_ns": at_ns, "seq": at_ns // NS_PER_MS}
            columns = _columns(found, values)
            columns["row"] = pa.array(np.arange(len(found), dtype=np.int32))
            yield _rows({**fixed, **own}, columns, len(found))


def _columns(found: Sequence[Difference], values: Sequence[dict[str, Any]]) -> dict[str, pa.Array]:
    schema = table_arrow_schema(BRONZE_SAMPLES)
    dicts = [own | difference.same for difference, own in zip(found, values, strict=True)]
    names = {name for row in dicts for name in row} & _NAMES
    return {
        name: pa.array([row.get(name) for row in dicts], schema.field(name).type) for name in names
    }


def _boot(scrape: Scrape, since_ns: int) -> str:
    """When the broker's process began, in seconds since the epoch if it says so, and the scrape
    that the rows count from, in milliseconds."""
    started_s = scrape.broker.get("started_s")
    return f"{'' if started_s is None else int(started_s)}@{since_ns // NS_PER_MS}"


def _header(label: str, start_ns: int, end_ns: int) -> dict[str, Any]:
    return {
        "source": scrape_source(label),
        "broker": label,
        "window_start_ns": start_ns,
        "window_end_ns": end_ns,
        "clock_step": False,
    }


def _rows(fixed: dict[str, Any], columns: dict[str, pa.Array], count: int) -> pa.Table:
    schema = table_arrow_schema(BRONZE_SAMPLES)
    end_ns = fixed["window_end_ns"]
    end = pa.scalar(end_ns // 1_000, pa.int64()).cast(TIMESTAMP)
    same = {
        name: pa.repeat(pa.scalar(value, schema.field(name).type), count)
        for name, value in fixed.items()
    }
    ends = np.full(count, end_ns - 1, dtype=np.int64)
    all_columns = {
        **partition_columns(ends),
        **same,
        **columns,
        "window_end": pa.repeat(end, count),
    }
    return conform(all_columns, schema, count)
