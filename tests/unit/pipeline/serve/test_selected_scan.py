"""A scan of some names."""

from __future__ import annotations

from pathlib import Path

from headgate.pipeline.serve.selected_scan import SelectedScan
from headgate.pipeline.serve.selection import Selection
from tests.unit.pipeline.report.folder import NS, quota_row, write


def test_rows_and_batches_have_the_selected_names_only(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(0, NS + name) for name in ("a", "q", "aq")])
    scan = SelectedScan(str(tmp_path), "quota_usage", Selection(0, 1, text="Q"))
    assert sorted(scan.rows(["topic"])["topic"].to_pylist()) == [NS + "aq", NS + "q"]
    assert sum(batch.num_rows for batch in scan.batches(["topic"])) == 2
