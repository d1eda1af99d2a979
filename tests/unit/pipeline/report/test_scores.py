"""Accuracy of the forecasts of the page's topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.pipeline.report.scores import forecast_scores, share_text
from headgate.pipeline.store.scan import TableScan
from tests.unit.pipeline.level_play import MINUTE, TOPIC, rows_of
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import at, write


@pytest.fixture
def intervals(tmp_path: Path) -> TableScan:
    """A topic whose size quota fills along a line, up to its limit in minute 99."""
    levels = [min(100 * (i + 1), 10_000) for i in range(130)]
    rows = rows_of(levels, quota_size_limit_bytes=10_000, kind="topic")
    write(tmp_path, "intervals", [{**row, **at(row["from_ns"])} for row in rows],
          ("date", "hour", "kind"))  # fmt: skip
    return TableScan(str(tmp_path), "intervals")


def test_all_and_each(intervals: TableScan) -> None:
    whole, topic = forecast_scores(intervals, [TOPIC, TOPIC], T0, T0 + 130 * MINUTE)
    assert (whole["topic"], topic["topic"]) == ("all topics below", "acme/ns/t")
    assert (topic["quota"], topic["forecasts"], topic["breaches"]) == ("size", 19, 19)
    assert topic["breaches within the band"] == topic["levels within the band"] == "100 %"
    assert topic["pinball loss (s)"] == pytest.approx(0, abs=1e-6)
    assert topic["breaches missed"] == "0 %"
    assert {k: v for k, v in whole.items() if k != "topic"} == {
        **{k: v for k, v in topic.items() if k != "topic"}, "quota": ""
    }  # fmt: skip


@pytest.mark.parametrize("topics", [[], ["persistent://acme/ns/other"]])
def test_nothing_to_score(intervals: TableScan, topics: list[str]) -> None:
    assert forecast_scores(intervals, topics, T0, T0 + 130 * MINUTE) == []


def test_forecasts_without_outcomes_yet(intervals: TableScan) -> None:
    assert forecast_scores(intervals, [TOPIC], T0 + 129 * MINUTE, T0 + 130 * MINUTE) == []


@pytest.mark.parametrize(
    ("share", "text"), [(None, None), (0.0, "0 %"), (0.8512, "85 %"), (0.0123, "1.2 %")]
)
def test_shares_in_words(share: float | None, text: str | None) -> None:
    assert share_text(share) == text
