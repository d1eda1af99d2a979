"""Rows of ``bronze_samples`` from the differences between two scrapes.

A subject gets two rows that form a separate stream: one at the first scrape, where counting begins,
and one at the second. So rows depend on two scrapes only, whichever others are read with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.base.units import INT64_MAX, NS_PER_MS
from headgate.flow.account.verdict import INFERRED
from headgate.pipeline.scrapes.differences import differences
from headgate.pipeline.scrapes.pairs import Difference, ScrapePair
from headgate.pipeline.scrapes.reading import Scrape
from headgate.pipeline.tables.arrow_types import (
    TIMESTAMP,
    conform,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES
from headgate.record.fields import UNKNOWN_INCARNATION

_NAMES: Final = frozenset(column.name for column in BRONZE_SAMPLES.columns)


SOURCE_PREFIX: Final = "scrape:"
"""Prefix of the sources that are scrapes."""


def scrape_source(label: str) -> str:
    """The source of the rows from the scrapes of a broker."""
    return f"{SOURCE_PREFIX}{label}"


def batch_rows(label: str, scrape: Scrape, at_ns: int) -> pa.Table:
    """The row that records that a scrape was read."""
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
    """The rows of all subjects in both scrapes, one table for each kind and scrape."""
    boot = _boot(pair.after, pair.before_ns)
    for kind, found in differences(pair):
        if not found:
            continue
        fixed = {
            **_header(pair.label, pair.before_ns, pair.after_ns),
            "kind": kind.value,
            "boot_id": boot,
            "incarnation": UNKNOWN_INCARNATION,
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
        name: _column([row.get(name) for row in dicts], schema.field(name).type) for name in names
    }


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column. A number that does not fit is null: what a cluster tells of one topic must not keep
    all others from being read."""
    try:
        return pa.array(values, kind)
    except OverflowError:
        return pa.array([_fitting(value) for value in values], kind)


def _fitting(value: Any) -> Any:
    return None if isinstance(value, int) and abs(value) > INT64_MAX else value


def _boot(scrape: Scrape, since_ns: int) -> str:
    """The boot id: the start of the broker's process, if known, and the scrape where counting
    begins.

    The start is in seconds since the epoch, the scrape's time in milliseconds.
    """
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
