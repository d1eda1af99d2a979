"""The texts of sections, with and without data."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.pipeline.report import sections
from headgate.pipeline.report.grid import Grid
from headgate.pipeline.report.sections import Charts
from tests.unit.pipeline.play import T0, S
from tests.unit.pipeline.report import facts
from tests.unit.pipeline.report.facts import GRID


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (lambda c: sections.backlog_section(facts.backlogs(), GRID, c), "1,000 subscriptions had"),
        (lambda c: sections.quota_section((), GRID, c), "has a backlog quota."),
        (lambda c: sections.producer_section((), GRID, c), "No producer was held"),
        (lambda c: sections.limiter_section((), GRID, c), "No subscription or producer waited"),
        (lambda c: sections.eviction_section((), GRID, c), "No message was evicted"),
        (lambda c: sections.score_section(None), "nothing to compare"),
        (lambda c: sections.missing("a", "A", "tab"), "has no table tab"),
    ],
)
def test_a_section_without_data_says_so(section: Any, said: str) -> None:
    charts = Charts()
    found = section(charts)
    assert said in found.lead
    assert (found.blocks, found.table, charts.by_id) == ([], None, {})


def test_every_section_with_data_has_its_own_charts() -> None:
    charts = Charts()
    found = [
        sections.backlog_section(facts.backlogs(facts.backlog()), GRID, charts),
        sections.quota_section([facts.quota_topic(facts.near_breach())], GRID, charts),
        sections.producer_section([facts.parked_topic()], GRID, charts),
        sections.limiter_section([facts.limiter()], GRID, charts),
        sections.eviction_section([facts.eviction()], GRID, charts),
        sections.quality_section(facts.quality(), GRID, charts),
    ]
    drawn = [block.chart for section in found for block in section.blocks]
    assert drawn == list(charts.by_id) == [f"chart-{i}" for i in range(1, 7)]
    for section in found:
        for row in section.table.rows if section.table else ():
            assert len(row) == len(section.table.columns if section.table else ())
    assert len({section.anchor for section in found}) == len(found)


def test_producers_are_held_as_long_as_by_the_main_cause() -> None:
    table = sections.producer_section([facts.parked_topic()], GRID, Charts()).table
    assert table is not None
    assert table.rows[0][1:] == (
        "30 s (17 %)", "topic's publish limit", "2025-11-21 10:01 UTC: the worst <i>",
    )  # fmt: skip


def test_a_sentence_of_one_minute_names_it() -> None:
    (quota,) = sections.quota_section([facts.quota_topic()], GRID, Charts()).blocks
    (limit,) = sections.limiter_section([facts.limiter()], GRID, Charts()).blocks
    assert quota.text == "In its last minute, 2025-11-21 10:02 UTC: it fills"
    assert limit.text == "In its worst minute, 2025-11-21 10:01 UTC: somebody waits"
    (unsaid,) = sections.quota_section([facts.quota_topic(sentence="")], GRID, Charts()).blocks
    assert unsaid.text == ""


def test_empty_columns_are_not_shown() -> None:
    table = sections.quota_section([facts.reached_topic()], GRID, Charts()).table
    assert table is not None
    assert table.shown.columns == ("topic", "quota", "state", "producers held")
    assert table.shown.rows == (("public/default/full", "size", "reached", "112 s (62 %)"),)
    assert table.shown.numeric == {3}
    both = [facts.reached_topic(), facts.quota_topic(facts.near_breach())]
    wide = sections.quota_section(both, GRID, Charts()).table
    assert wide is not None
    assert wide.shown.columns == tuple(c for c in wide.columns if c != "messages evicted")


def test_a_worst_backlog_has_all_its_facts() -> None:
    (block,) = sections.backlog_section(facts.backlogs(facts.backlog()), GRID, Charts()).blocks
    assert block.text == "The topic limit of <b>200</b> msg/s."
    assert block.tag == "THROTTLED_TOPIC"
    assert block.facts.startswith("grew by 1,200 to 2,000 messages (20/s); peak 2,500")


@pytest.mark.parametrize(
    ("growth", "said"),
    [
        (0, "unchanged at 2,000 messages"),
        (-60, "shrank by 60 to 2,000 messages (1/s)"),
        (6, "grew by 6 to 2,000 messages (0.1/s)"),
    ],
)
def test_growth_in_words(growth: int, said: str) -> None:
    assert sections.growth_text(facts.backlog(growth_messages=growth)) == said


@pytest.mark.parametrize(
    ("breach", "cells"),
    [
        ({}, ("2025-11-21 10:08:00", "5 min", "2 min", "10 min", "trend of the last hour")),
        (
            {"likely_s": 4_000.0, "latest_s": None},
            ("2025-11-21 11:09:40", "67 min", "2 min", "more than a day", "trend of the last hour"),
        ),
        (
            {"method": "broker", "earliest_s": None, "latest_s": None},
            (
                "2025-11-21 10:08:00", "5 min", "unknown", "unknown",
                "broker, at the current rate",
            ),
        ),
    ],
)  # fmt: skip
def test_a_breach_in_a_row(breach: dict[str, Any], cells: tuple[str, ...]) -> None:
    """In the units of the topic's own sentence, from the instant that this one counts from."""
    topic = facts.quota_topic(facts.near_breach(**breach))
    section = sections.quota_section([topic], GRID, Charts())
    assert section.table is not None
    assert section.table.shown.rows[0][1:] == ("size", "approached", *cells)
    assert "from the newest telemetry" in section.note


def test_a_limit_of_zero_has_no_use() -> None:
    found = [facts.quota_topic(peak_use=None), facts.quota_topic(peak_use=1.25)]
    blocks = sections.quota_section(found, GRID, Charts()).blocks
    assert blocks[0].facts.startswith("policy producer_request_hold")
    assert blocks[1].facts.startswith("peak use 125 %; policy")


@pytest.mark.parametrize(("count", "said"), [(1, "1 gap, 1 restart,"), (1_200, "1,200 gaps, ")])
def test_counts_have_singular_and_plural(count: int, said: str) -> None:
    counts = {"gaps": count, "restarts": 1, "resets": 0, "clock_steps": 0}
    lead = sections.quality_section(facts.quality(counts=counts), GRID, Charts()).lead
    assert said in lead


def test_scores_are_a_table() -> None:
    rows = [{"topic": "a", "quota": "size", "loss": 0.8123, "forecasts": 12_000, "lost": None}]
    table = sections.score_section(rows).table
    assert table is not None
    assert table.rows == (("a", "size", "0.81", "12,000", ""),)
    assert table.numeric == {2, 3, 4}


def test_a_range_in_words() -> None:
    assert sections.range_text(GRID) == (
        "2025-11-21 10:00:00 UTC to 2025-11-21 10:03:00 UTC (3 min)"
    )
    partial = Grid.over(T0 + 26 * S, T0 + 152 * S)
    assert sections.range_text(partial) == (
        "2025-11-21 10:00:26 UTC to 2025-11-21 10:02:32 UTC (2 min)"
    )
