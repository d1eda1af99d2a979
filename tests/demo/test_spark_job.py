"""``headgate demo`` with Spark: the tables' judgement of real traffic."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.demo.run import NEXT
from headgate.demo.scenes import subjects

pytestmark = pytest.mark.alone

_LIMIT_S = 480.0


def test_the_tables_judge_as_explain_does(tmp_path: Path) -> None:
    scratch, tables = tmp_path / "scratch", tmp_path / "tables"
    scratch.mkdir()
    process = subprocess.run(
        [sys.executable, "-m", "headgate.cli", "demo", "--seconds", "20", "--out", str(tables)],
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    text = process.stdout
    wrong = [line for line in text.splitlines() if line.startswith("WRONG")]
    assert process.returncode == 0, "\n".join([*wrong, text, process.stderr])
    assert f"attribution: {len(list(subjects()))} subscriptions judged" in text
    assert "judged from the tables over the whole run" in text
    assert text.endswith(f"The tables (Delta) stay in {tables}\n{NEXT}\n")
    expected = {(s.cluster, s.topic, s.subscription): scene.verdict for s, scene in subjects()}
    rows = DeltaTable(tables / "attribution").to_pyarrow_table().to_pylist()
    assert {(row["cluster"], row["topic"], row["subscription"]) for row in rows} == set(expected)
    samples = DeltaTable(tables / "bronze_samples").to_pyarrow_table(columns=["kind"])
    (published,) = re.findall(r"bronze_samples: all ([\d,]+) samples", text)
    batches = samples.column("kind").to_pylist().count("batch")
    assert samples.num_rows - batches == int(published.replace(",", ""))
    assert list(scratch.iterdir()) == []
