"""Causes and backlogs by minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.pipeline.serve.selection import Selection
from headgate.pipeline.serve.timelines import runs_of, timeline, timelines
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.time_span import iso_text
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, at, topic_key, write

HOUR = (T0, T0 + HOUR_NS)


def judged(place: int, verdict: str, backlog: int, topic: str = NS + "a", **more: Any) -> Any:
    """A minute of a subscription."""
    start_ns = T0 + place * MINUTE_NS
    return {
        **at(start_ns),
        **topic_key(topic, more.pop("partition", None)),
        "subscription": "s",
        "from_ns": start_ns,
        "to_ns": start_ns + MINUTE_NS,
        "backlog_messages": backlog,
        "growth_messages": 1,
        "verdict": verdict,
        "confidence": 0.9,
        "completeness": 1.0,
        "oldest_age_max_ns": 5_000_000_000,
        "evidence": "measured",
        "sentence": f"{verdict}: {backlog}.",
        **more,
    }


@pytest.fixture
def scan(tmp_path: Path) -> TableScan:
    rows = [
        judged(0, "NONE", 0),
        judged(1, "CONSUMER", 10),
        judged(2, "CONSUMER", 30),
        judged(3, "BROKER", 20, evidence="inferred"),
        judged(9, "BROKER", 5),
        *(judged(place, "NO_CONSUMER", 99, NS + "b", partition=1) for place in range(3)),
        judged(0, "NO_CONSUMER", 7, NS + "b", partition=2),
        judged(0, "NONE", 0, NS + "quiet"),
    ]
    write(tmp_path, "attribution", rows)
    return TableScan(str(tmp_path), "attribution")


def test_the_largest_backlogs_with_their_strips(scan: TableScan) -> None:
    answer = timelines(scan, Selection(*HOUR))
    found = {each["topic"].removeprefix(NS): each for each in answer["subscriptions"]}
    assert list(found) == ["b-partition-1", "a", "b-partition-2"]
    assert answer["more"] == 0
    line = found["a"]["timeline"]
    assert (line["start"], line["stepS"], len(line["verdicts"])) == (iso_text(T0), 60, 60)
    assert line["verdicts"][:5] == ["NONE", "CONSUMER", "CONSUMER", "BROKER", None]
    assert line["backlog"][:5] == [0, 10, 30, 20, None]
    assert found["a"]["peak"]["sentence"] == "CONSUMER: 30."
    assert found["a"]["last"]["verdict"] == "BROKER"
    assert [found[name]["isInferred"] for name in ("a", "b-partition-1")] == [True, False]


def test_filters_and_the_number_of_entries(scan: TableScan) -> None:
    answer = timelines(scan, Selection(*HOUR, verdict="CONSUMER"))
    assert [each["topic"] for each in answer["subscriptions"]] == [NS + "a"]
    assert len(timelines(scan, Selection(*HOUR, text="/B"))["subscriptions"]) == 2
    answer = timelines(scan, Selection(*HOUR, count=1))
    assert (len(answer["subscriptions"]), answer["more"]) == (1, 2)
    empty = timelines(scan, Selection(*HOUR, tenant="nobody"))
    assert (empty["subscriptions"], empty["more"]) == ([], 0)


def test_a_step_of_several_minutes_has_the_cause_of_its_largest_backlog(scan: TableScan) -> None:
    answer = timelines(scan, Selection(T0, T0 + 40 * HOUR_NS, text="/a"))
    line = answer["subscriptions"][0]["timeline"]
    assert (line["stepS"], line["verdicts"][0], line["backlog"][0]) == (600, "CONSUMER", 30)


def test_one_subscription_by_minute(scan: TableScan) -> None:
    answer = timeline(scan, Selection(*HOUR), NS + "a", "s", "c1")
    assert answer["timeline"]["verdicts"][9] == "BROKER"
    assert [(r["verdict"], r["minutes"], r["sentence"]) for r in answer["runs"]] == [
        ("NONE", 1, "NONE: 0."),
        ("CONSUMER", 2, "CONSUMER: 30."),
        ("BROKER", 1, "BROKER: 20."),
        ("BROKER", 1, "BROKER: 5."),
    ]
    assert answer["runs"][1]["end"] == iso_text(T0 + 3 * MINUTE_NS)
    assert answer["runs"][2]["isInferred"]
    partition = timeline(scan, Selection(*HOUR), NS + "b-partition-2", "s")
    assert [r["peakBacklogMessages"] for r in partition["runs"]] == [7]
    assert timeline(scan, Selection(*HOUR), NS + "a", "s", "c2")["runs"] == []


def test_no_rows_no_runs() -> None:
    assert list(runs_of([])) == []
