"""Whose time judged minutes were: shares of blame that may be summed over minutes. Arrow; no Spark.

A minute's shares say where its messages spent their time, its verdict who is to blame. To sum blame
over minutes, its shares are read as the verdict does
(``headgate.flow.account.verdict.blamed_shares``):

- In a minute with the verdict NONE nobody is to blame: its shares are of messages in flight.
- Where the limiter named second merely stood by (``bystander``), its share is the consumer's.

Each share weighs as much as its minute's account is long. Where rows were lost the next one has
their time, too; while the broker was down there was no account, and nobody is blamed for it.

The view ``namespace_rollup`` and episodes sum blame so, an episode with the pauses that it bridges.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S
from headgate.pipeline.tables.attribution import BLAMES, SHARE_COLUMNS

BLAME_INPUT: Final = ("verdict", "second", "bystander", *SHARE_COLUMNS)
"""Columns of ``attribution`` that are needed."""

WEIGHT_INPUT: Final = ("accounted_ns", "completeness", "from_ns", "to_ns")
"""Those that are needed of how much a row weighs."""

LIMITERS: Final = tuple(blame for blame in BLAMES if blame.startswith("THROTTLED"))
"""Whom a bystander may be."""


def blamed_shares(rows: pa.Table | pa.RecordBatch) -> dict[str, pa.Array]:
    """For each of ``BLAMES`` its part of each row's time, 0 to 1; they sum to 1 in each row.

    ``rows`` has :data:`BLAME_INPUT`.
    """
    nobody = pc.equal(rows.column("verdict"), "NONE")
    stood_by = pc.fill_null(rows.column("bystander"), False)
    shares = {b: rows.column(n) for b, n in zip(BLAMES, SHARE_COLUMNS, strict=True)}
    for limiter in LIMITERS:
        is_second = pc.fill_null(pc.equal(rows.column("second"), limiter), False)
        moved = pc.if_else(pc.and_(stood_by, is_second), shares[limiter], 0.0)
        shares[limiter] = pc.subtract(shares[limiter], moved)
        shares["CONSUMER"] = pc.add(shares["CONSUMER"], moved)
    return {
        blame: pc.if_else(nobody, 1.0 if blame == "NONE" else 0.0, share)
        for blame, share in shares.items()
    }


def weight_s(rows: pa.Table | pa.RecordBatch) -> pa.Array:
    """How long the account of each row is, which its shares are parts of; in seconds.

    ``rows`` has :data:`WEIGHT_INPUT`. A row that an earlier version wrote does not tell, and weighs
    as long as its minute was covered.
    """
    length_ns = pc.subtract(rows.column("to_ns"), rows.column("from_ns")).cast(pa.float64())
    covered_ns = pc.multiply(rows.column("completeness"), length_ns)
    told_ns = rows.column("accounted_ns").cast(pa.float64())
    return pc.divide(pc.coalesce(told_ns, covered_ns), float(NS_PER_S))


def blamed_s(rows: pa.Table | pa.RecordBatch) -> dict[str, pa.Array]:
    """For each of ``BLAMES`` the seconds of each row that it is to blame for; these add up.

    ``rows`` has :data:`BLAME_INPUT` and :data:`WEIGHT_INPUT`.
    """
    weight = weight_s(rows)
    return {blame: pc.multiply(share, weight) for blame, share in blamed_shares(rows).items()}
