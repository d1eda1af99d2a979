"""Every table that is computed from others has an oracle in the Spark lane."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.tables.quality import QUALITY
from tests.tidy.tree import ROOT

NAME = re.compile(r"``([a-z_]+)``")


def explained(path: Path) -> set[str]:
    """The tables that the first line of an oracle names; a test must compare it, too."""
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    lane = [file for file in path.parent.glob("test_*.py") if path.stem in file.read_text("utf-8")]
    return {*NAME.findall(first)} if lane else set()


def test_every_computed_table_has_an_oracle() -> None:
    """``demonstrated_rates`` was added without one."""
    oracles = sorted((ROOT / "tests" / "spark").glob("*_oracle.py"))
    have = set().union(*map(explained, oracles))
    assert {*(derived.name for derived in DERIVED), QUALITY.name} - have == set()
