"""``headgate demo`` with Spark: the tables' judgement of real traffic.

Its brokers ask for credentials, which changes nothing else; ``test_demo.py`` has a plain run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.demo.run import KEEP_HINT, NEXT
from headgate.demo.scenes import subjects
from headgate.demo.spark import SparkSpec
from headgate.demo.spark_job import source_of
from headgate.pipeline.access_options import NO_ACCESS, AccessOptions
from headgate.pipeline.options import SourceOptions

pytestmark = pytest.mark.alone

_LIMIT_S = 480.0
_JWT = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")


def test_the_tables_judge_as_explain_does(tmp_path: Path) -> None:
    scratch, tables = tmp_path / "scratch", tmp_path / "tables"
    scratch.mkdir()
    words = ["demo", "--secured", "--seconds", "20", "--out", str(tables)]
    process = subprocess.run(
        [sys.executable, "-m", "headgate.cli", *words],
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
    assert text.endswith(f"The tables (Delta) stay in {tables}\n{NEXT}\n{KEEP_HINT}\n")
    expected = {(s.cluster, s.topic, s.subscription): scene.verdict for s, scene in subjects()}
    rows = DeltaTable(tables / "attribution").to_pyarrow_table().to_pylist()
    assert {(row["cluster"], row["topic"], row["subscription"]) for row in rows} == set(expected)
    samples = DeltaTable(tables / "bronze_samples").to_pyarrow_table(columns=["kind"])
    (published,) = re.findall(r"bronze_samples: all ([\d,]+) samples", text)
    batches = samples.column("kind").to_pylist().count("batch")
    assert samples.num_rows - batches == int(published.replace(",", ""))
    assert list(scratch.iterdir()) == []
    assert "Bearer" not in text
    assert not _JWT.search(text), "no token is shown"


def test_the_job_has_credentials_if_the_brokers_ask_for_them() -> None:
    plain = SparkSpec(("pulsar://h:6650",), ("http://h:8080",), "/tables")
    secured = replace(plain, token_path="/of a run/pipeline.token")
    for spec, access in (
        (plain, NO_ACCESS),
        (secured, AccessOptions("token", "file:///of%20a%20run/pipeline.token")),
    ):
        source = source_of(SparkSpec.from_json(spec.to_json()))
        assert source == SourceOptions("/tables", plain.broker_urls, plain.web_urls, access=access)
