"""The page over the tables of the pipeline: each view of the past in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from headgate.pipeline.time_span import iso_text
from tests.page.conftest import OpenPage
from tests.page.history_scene import TOPICS, HistoryScene
from tests.page.whole import LOOKS, assert_whole
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS

ORDERS = quote(NS + TOPICS[0], safe="")
FILLING = quote(f"{NS}filling", safe="")
BILLING = f"public/default/{TOPICS[0]} · billing"
IN_EPISODE = iso_text(T0 + 3_600_000_000_000)

VIEWS = {
    "episodes": ("episodes", "Episodes"),
    "timelines": ("timelines", "Timelines"),
    "forecasts": ("forecasts", "Forecasts"),
    "backtests": ("backtests", "Backtests"),
    "episode": (f"episode/{ORDERS}/billing?at={quote(IN_EPISODE)}", BILLING),
    "timeline": (f"timeline/{ORDERS}/billing?hours=3", BILLING),
    "forecast": (f"forecast/{FILLING}?hours=3", "public/default/filling"),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HistoryScene]:
    """Tables that no test changes."""
    scene = HistoryScene(tmp_path_factory.mktemp("tables"))
    yield scene
    scene.close()


def opened(open_page: OpenPage, tables: HistoryScene, name: str) -> Page:
    """A view with its answer."""
    page = open_page(VIEWS[name][0], url=tables.url)
    expect(page.locator(".freshness")).to_contain_text("the tables reach to 2025-11-21 14:00 UTC")
    return page


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_the_past_is_whole(
    open_page: OpenPage, tables: HistoryScene, artifacts: Path, name: str
) -> None:
    page = opened(open_page, tables, name)
    looks = (LOOKS[0], LOOKS[-1])
    assert_whole(page, VIEWS[name][1], artifacts, f"history-{name}", looks)


def test_a_chart_of_the_past_tells_backlog_and_cause_of_a_minute(
    open_page: OpenPage, tables: HistoryScene
) -> None:
    page = opened(open_page, tables, "timeline")
    chart = page.get_by_role("slider", name="Backlog over time")
    chart.focus()
    chart.press("Home")
    # Three hours up to 14:00 begin at 11:00.
    expect(chart).to_have_attribute("aria-valuetext", re.compile(r"^2025-11-21 11:00 UTC; Backlog"))
    expect(page.locator(".chart figcaption .verdict")).to_have_text("Topic limit")
    chart.press("End")
    expect(page.locator(".chart figcaption")).to_contain_text("2025-11-21 13:59 UTC")


def test_a_chart_of_quotas_has_percent_and_marks_what_came(
    open_page: OpenPage, tables: HistoryScene
) -> None:
    page = opened(open_page, tables, "forecast")
    expect(page.locator(".chart text.end").first).to_have_text("0 %")
    expect(page.locator(".chart text.end").last).to_have_text("100 %")
    expect(page.locator(".chart figcaption")).to_contain_text("Size quota used: ")
    expect(page.locator(".chart .mark.breach").first).to_be_attached()
    expect(page.get_by_text("The newest 60; a shorter range has the others.")).to_be_visible()
    expect(page.locator("tbody")).to_have_count(60)
