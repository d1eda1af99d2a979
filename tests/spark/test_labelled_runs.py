"""The pipeline's verdicts and confidence on runs of real clients with a known cause."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from headgate.pipeline import jobs
from headgate.pipeline.options import AttributeOptions, SourceOptions
from tests.spark.labelled import CLUSTERS, labels, played

pytestmark = pytest.mark.alone

PLAY_S = 30.0
RIGHT_MIN = 0.95
BRIER_MAX = 0.10


def brier(rows: list[dict[str, Any]], meant: dict[tuple[str, str], str]) -> float:
    """The mean squared distance of each confidence from the truth: 1 where the verdict is right."""
    found = [
        (row["confidence"] - (row["verdict"] == meant[row["topic"], row["subscription"]])) ** 2
        for row in rows
    ]
    return sum(found) / len(found)


@pytest.mark.usefixtures("spark")
def test_verdicts_are_right_and_as_sure_as_they_are_right(tmp_path: Path) -> None:
    meant = labels()
    assert len(meant) >= 12
    with played(tmp_path / "brokers", PLAY_S) as brokers:
        source = SourceOptions(
            str(tmp_path / "tables"),
            tuple(brokers[name].service_url for name in CLUSTERS),
            tuple(brokers[name].admin_url for name in CLUSTERS),
        )
        out = io.StringIO()
        jobs.run_attribute(AttributeOptions(source, format="json"), out, io.StringIO())
    rows = json.loads(out.getvalue())
    assert {(row["topic"], row["subscription"]) for row in rows} == set(meant)
    wrong = [
        f"{row['topic']} {row['subscription']}: {row['sentence']}"
        for row in rows
        if row["verdict"] != meant[row["topic"], row["subscription"]]
    ]
    assert len(wrong) <= (1 - RIGHT_MIN) * len(rows), "\n".join(wrong)
    assert brier(rows, meant) <= BRIER_MAX
