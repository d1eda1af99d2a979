"""Blamed time of minutes, by cause, in a form that can be summed over minutes.

A minute's shares say where its messages spent their time. Its verdict says which cause is to blame.
Before shares are summed, this module corrects them by the verdict, like
``headgate.flow.account.verdict.blamed_shares``:

- In a minute with the verdict NONE no cause is to blame: the shares are those of messages in
  flight.
- The share of a bystander limiter counts for the consumer.

The weight of a share is the accounted time of its minute. After lost rows the next row accounts for
their time, too. While the broker was down there is no account, and no blame.

The view ``namespace_rollup`` and the table ``episodes`` sum blame by these rules. An episode
includes the pauses that it bridges.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S
from headgate.pipeline.tables.attribution import BLAMES, SHARE_COLUMNS

BLAME_INPUT: Final = ("verdict", "second", "bystander", *SHARE_COLUMNS)
"""Columns of ``attribution`` from which the shares are corrected."""

WEIGHT_INPUT: Final = ("accounted_ns", "completeness", "from_ns", "to_ns")
"""Columns of ``attribution`` from which the weight of a row follows."""

LIMITERS: Final = tuple(blame for blame in BLAMES if blame.startswith("THROTTLED"))
"""The causes that a bystander can be."""


def blamed_shares(rows: pa.Table | pa.RecordBatch) -> dict[str, pa.Array]:
    """The share of each of ``BLAMES`` in each row's time, 0 to 1; the shares of a row sum to 1.

    ``rows`` has :data:`BLAME_INPUT`.
    """
    is_none = pc.equal(rows.column("verdict"), "NONE")
    stood_by = pc.fill_null(rows.column("bystander"), False)
    shares = {b: rows.column(n) for b, n in zip(BLAMES, SHARE_COLUMNS, strict=True)}
    for limiter in LIMITERS:
        is_second = pc.fill_null(pc.equal(rows.column("second"), limiter), False)
        moved = pc.if_else(pc.and_(stood_by, is_second), shares[limiter], 0.0)
        shares[limiter] = pc.subtract(shares[limiter], moved)
        shares["CONSUMER"] = pc.add(shares["CONSUMER"], moved)
    return {
        blame: pc.if_else(is_none, 1.0 if blame == "NONE" else 0.0, share)
        for blame, share in shares.items()
    }


def weight_s(rows: pa.Table | pa.RecordBatch) -> pa.Array:
    """The accounted time of each row, in seconds.

    ``rows`` has :data:`WEIGHT_INPUT`. Rows of earlier versions have no ``accounted_ns``; their
    covered time counts instead.
    """
    length_ns = pc.subtract(rows.column("to_ns"), rows.column("from_ns"))
    length_ns = pc.cast(length_ns, pa.float64(), safe=False)
    covered_ns = pc.multiply(rows.column("completeness"), length_ns)
    accounted_ns = rows.column("accounted_ns").cast(pa.float64(), safe=False)
    return pc.divide(pc.coalesce(accounted_ns, covered_ns), float(NS_PER_S))


def blamed_s(rows: pa.Table | pa.RecordBatch) -> dict[str, pa.Array]:
    """The seconds of each row that each of ``BLAMES`` is to blame for. They may be summed.

    ``rows`` has :data:`BLAME_INPUT` and :data:`WEIGHT_INPUT`.
    """
    weight = weight_s(rows)
    return {blame: pc.multiply(share, weight) for blame, share in blamed_shares(rows).items()}
