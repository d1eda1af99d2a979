"""Every table but bronze and ``policy_backtest`` is derived, after its source."""

from __future__ import annotations

from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from headgate.pipeline.tables.quality import QUALITY


def test_every_table_but_bronze_is_derived_after_its_source() -> None:
    bronze = [table for table in TABLES.values() if table.name.startswith("bronze_")]
    assert len(bronze) == 3
    # A backtest depends on a grid file, too: it is run, not derived. The rows of quality follow
    # from the files of all tables, not from rows.
    others = {table.name for table in (*bronze, QUALITY, POLICY_BACKTEST)}
    assert {table.name for table in DERIVED} == set(TABLES) - others
    known = [*bronze]
    for derivation in DERIVED:
        assert derivation.source in known
        assert {*derivation.table.follows_from} <= {table.name for table in known}
        known.append(derivation.table)
