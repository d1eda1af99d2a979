"""Charts fill their column, their text keeps its size, and they tell the values at an instant."""

from __future__ import annotations

import itertools
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import PHONE, WIDE, OpenPage
from tests.page.views import subscription_view, topic_view

WIDEST = (1920, 1080)


def chart_of(page: Page) -> Locator:
    """The chart of the view."""
    return page.get_by_role("slider", name="over time")


@pytest.mark.parametrize("size", [WIDEST, WIDE, PHONE], ids=["widest", "wide", "phone"])
def test_a_chart_fills_its_column_with_text_that_can_be_read(
    open_page: OpenPage, size: tuple[int, int]
) -> None:
    page = open_page(topic_view("topic-limit"), size)
    column = page.locator("main section").first.bounding_box()
    # The figure has a border.
    drawing = chart_of(page).locator("svg").bounding_box()
    assert column is not None
    assert drawing is not None
    assert column["width"] - drawing["width"] <= 4
    assert drawing["width"] == pytest.approx(
        min(size[0], 1800) - (24 if size is PHONE else 40), abs=4
    )
    heights = page.eval_on_selector_all(
        ".chart text", "all => all.map((each) => each.getBoundingClientRect().height)"
    )
    assert len(heights) > 6
    assert all(11 <= height <= 17 for height in heights)
    # Labels of an axis do not overlap.
    boxes = page.eval_on_selector_all(
        ".chart text.middle",
        "all => all.map((each) => each.getBoundingClientRect()).map((at) => [at.left, at.right])",
    )
    assert len(boxes) >= 3
    assert all(right + 4 < left for (_, right), (left, _) in itertools.pairwise(boxes))
    assert boxes[-1][1] <= size[0]
    # It follows the width of the window.
    shown = chart_of(page).locator("svg")
    expect(shown).to_have_attribute("viewBox", re.compile(rf"^0 0 {drawing['width']:.0f} "))
    page.set_viewport_size({"width": 800, "height": 900})
    expect(shown).to_have_attribute("viewBox", re.compile(r"^0 0 758 "))


def test_arrow_keys_tell_the_values_of_a_minute(open_page: OpenPage) -> None:
    page = open_page(f"{subscription_view('slow-consumer', 'orders')}?paused=1")
    chart = chart_of(page)
    said = page.locator(".chart figcaption")
    expect(said).to_contain_text(re.compile(r"UTC.*Backlog of orders: 1,\d{3} messages"))
    expect(said.locator(".verdict")).to_have_text("Consumer")
    last = int(chart.get_attribute("aria-valuenow") or "")
    assert last == int(chart.get_attribute("aria-valuemax") or "")
    chart.focus()
    chart.press("Home")
    expect(said).to_contain_text("Backlog of orders: not known")
    expect(said.locator(".verdict")).to_have_text("Not known")
    expect(chart).to_have_attribute("aria-valuenow", "0")
    chart.press("End")
    chart.press("ArrowLeft")
    expect(chart).to_have_attribute("aria-valuenow", str(last - 1))
    chart.press("PageDown")
    expect(chart).to_have_attribute("aria-valuenow", str(last - 11))
    expect(page.locator(".chart .cursor")).to_have_count(1)
    chart.blur()
    expect(chart).to_have_attribute("aria-valuenow", str(last))
    expect(page.locator(".chart .cursor")).to_have_count(0)


def test_the_backlog_of_now_stands_at_the_end_of_the_hour(open_page: OpenPage) -> None:
    """A step has the backlog of its end: in its middle, the line would be early by half a step."""
    page = open_page(f"{subscription_view('slow-consumer', 'orders')}?paused=1")
    right = "all => Math.max(...all.map((each) => each.getBBox().x + each.getBBox().width))"
    page.locator(".chart .line").first.wait_for(state="attached")
    end = page.eval_on_selector_all(".chart path.rule", right)
    assert page.eval_on_selector_all(".chart path.line", right) == pytest.approx(end, abs=1.5)
    said = page.locator(".chart figcaption").inner_text()
    step = re.search(r"(\d\d):(\d\d):(\d\d) to (\d\d):(\d\d):(\d\d) UTC", said)
    assert step is not None
    hours, minutes, seconds = (int(step[at + 3]) - int(step[at]) for at in (1, 2, 3))
    assert (3_600 * hours + 60 * minutes + seconds) % 86_400 == 60


def test_a_pointer_tells_what_changed_at_a_minute(open_page: OpenPage) -> None:
    page = open_page(f"{topic_view('topic-limit')}?paused=1")
    said = page.locator(".chart figcaption")
    expect(said).not_to_contain_text("the dispatch limit")
    chart_of(page).scroll_into_view_if_needed()
    mark = page.locator(".chart .mark.before").bounding_box()
    assert mark is not None
    page.mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    expect(said).to_contain_text("the dispatch limit of the topic was set to 15 msg/s")
    expect(chart_of(page)).to_have_attribute("aria-valuetext", re.compile("dispatch limit"))
    page.mouse.move(5, 5)
    expect(said).not_to_contain_text("the dispatch limit")
