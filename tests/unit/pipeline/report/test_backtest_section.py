"""The backtest on the page: settings, ties, and censoring."""

from __future__ import annotations

import dataclasses

from headgate.pipeline.report.backtest_section import backtest_section
from headgate.pipeline.report.sections import Charts, Section
from tests.unit.pipeline.report import facts


def section_of(*ranks: int) -> Section:
    points = tuple(
        dataclasses.replace(point, rank=rank, parked_seconds=7_500.0, evicted_bytes=3 << 20)
        for point, rank in zip(facts.run(len(ranks)).points, ranks, strict=True)
    )
    return backtest_section(dataclasses.replace(facts.run(), points=points), Charts())


def test_without_a_run_the_section_names_the_command() -> None:
    charts = Charts()
    found = backtest_section(None, charts)
    assert "This folder has no backtest yet" in found.lead
    assert (found.blocks, found.table, charts.by_id) == ([], None, {})


def test_a_row_has_a_setting_and_its_costs_with_units() -> None:
    table = section_of(1, 2).table
    assert table is not None
    assert table.rows[1] == (
        "2", "drain <1>", "adaptive: law <b>", "", "10 s", "2 h 5 min", "90 %", "3 MiB", "",
    )  # fmt: skip
    assert len(table.columns) == len(table.rows[0])


def test_equal_scores_are_marked_and_the_mark_explained() -> None:
    tied, apart = section_of(1, 1, 3), section_of(1, 2, 3)
    assert tied.table is not None
    assert [row[0] for row in tied.table.rows] == ["=1", "=1", "3"]
    assert tied.note.startswith("=: settings with equal scores share a rank. Times are sums")
    assert apart.note.startswith("Times are sums")
    assert "Censored: part of the replayed time in which a limit or quota held" in apart.note


def test_the_front_is_counted_over_all_settings() -> None:
    run = dataclasses.replace(facts.run(), count=5_000, front=2_400)
    lead = backtest_section(run, Charts()).lead
    assert "5,000 settings replayed over 2 topics" in lead
    assert "2,400 are on the Pareto front" in lead
    alone = backtest_section(dataclasses.replace(run, count=1, front=1), Charts()).lead
    assert "1 setting replayed" in alone
    assert "1 is on the Pareto front" in alone
