"""A folder of tables for queries: episodes of several hours, evictions, waiters, a backtest."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from headgate.base.units import NS_PER_S
from headgate.pipeline.output.views import EpisodesScan, NamespacesScan
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.episodes import EPISODES
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import (
    NS,
    at,
    backtest_row,
    eviction_row,
    limiter_row,
    played,
    topic_key,
    write,
)

SCANS = {"backlog_episodes": EpisodesScan, "namespace_rollup": NamespacesScan}
WAITERS = '[{"waiter":"a|s","granted":7},{"waiter":"b|s","granted":3}]'


def filled(root: Path) -> Path:
    """The folder, with tables that lack columns, as earlier versions wrote them."""
    played(root)
    chance = Random(7)
    write(root, "episodes", [row for topic in range(8) for row in _episodes(topic, chance)])
    write(root, "evictions", [eviction_row(place) for place in range(3)])
    write(root, "throttle_timeline", [limiter_row(0, waiters=WAITERS), limiter_row(1)])
    write(root, "policy_backtest", [backtest_row(point) for point in range(2)], ("run_id",))
    return root


def _episodes(topic: int, chance: Random) -> list[dict[str, Any]]:
    """Segments of one subscription: some meet at an hour's edge, others are apart."""
    rows: list[dict[str, Any]] = []
    continues = False
    for hour in range(4):
        edge_ns = T0 + (hour + 1) * HOUR_NS
        start_ns = edge_ns - HOUR_NS if continues else edge_ns - 20 * MINUTE_NS
        goes_on = chance.random() < 0.6
        end_ns = edge_ns if goes_on else edge_ns - 9 * MINUTE_NS
        rows.append(_segment(topic, start_ns, end_ns, continues, goes_on, chance))
        continues = goes_on
    rows[-1] |= {"continues_after": False, "is_open": topic % 2 == 0}
    rows[-1]["ending"] = "open" if topic % 2 == 0 else "unseen"
    return rows


def _segment(
    topic: int, start_ns: int, end_ns: int, before: bool, after: bool, chance: Random
) -> dict[str, Any]:
    place = at(start_ns)
    minute = place.pop("minute")
    # Small whole numbers, so that causes are often equal.
    blamed = {f"blame_{b.lower()}_ns": chance.randrange(3) * MINUTE_NS for b in BLAMES}
    return dict.fromkeys(EPISODES.column_names()) | topic_key(f"{NS}t{topic}") | blamed | place | {
        "partition": None if topic % 2 else 3,
        "subscription": "s",
        "segment_start_ns": start_ns,
        "segment_end_ns": end_ns,
        "continues_before": before,
        "continues_after": after,
        "is_open": False,
        "ending": "continues" if after else "over",
        "minutes": (end_ns - start_ns) // MINUTE_NS,
        "peak_backlog_messages": chance.randrange(3),
        "peak_minute": minute,
        "growth_messages": chance.randrange(-9, 9),
        "oldest_age_max_ns": chance.randrange(10**10),
        **_lost(chance),
        "completeness": chance.random(),
        "evidence": "inferred" if chance.random() < 0.2 else "measured",
    }  # fmt: skip


def _lost(chance: Random) -> dict[str, Any]:
    """What a quota and a TTL took; a segment without a loss may have the last cause, too."""
    return {
        "evicted": chance.choice((None, 0, 5)),
        "evicted_by": chance.choice((None, "size", "time")),
        "evicted_by_limit": chance.randrange(10**9),
        "evicted_by_source": chance.choice((None, "topic policy")),
        "expired": chance.choice((None, 0, 7)),
        "expired_by_ttl_ns": chance.choice((None, 60 * NS_PER_S, 90 * NS_PER_S)),
        "expired_by_source": chance.choice((None, "topic policy", "namespace policy a/b")),
    }


def live_rows(root: Path, table: str) -> pa.Table:
    """A table's rows, as a Delta reader has them."""
    return DeltaTable(root / table).to_pyarrow_table()


def shown_rows(root: Path, view: str) -> list[dict[str, Any]]:
    """A view's rows as ``show`` computes them, without the sentence."""
    scan = SCANS[view](str(root))
    names = [name for name in scan.schema.names if name != "sentence"]
    rows = pa.Table.from_batches(
        list(scan.batches(names)), scan.schema.empty_table().select(names).schema
    )
    return in_order(rows.to_pylist())


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by their names and times."""
    key = ("cluster", "topic", "namespace", "episode_start_ns", "minute")
    return sorted(rows, key=lambda row: [str(row.get(name)) for name in key])
