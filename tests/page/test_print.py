"""On paper a view has its tables and charts, and nothing to press."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.page.conftest import OpenPage, go_to
from tests.page.views import subscription_view, topic_view

A4 = (718, 1000)
"""What a browser leaves of a page of A4 between its margins, in CSS pixels."""


VIEWS = (
    "now",
    "limits",
    "broker",
    topic_view("topic-limit"),
    subscription_view("topic-limit", "billing"),
)


def test_each_view_fits_paper(open_page: OpenPage) -> None:
    page = open_page("storage", A4)
    for view in VIEWS:
        page.emulate_media(media="screen")
        go_to(page, f"{view}?paused=1")
        page.emulate_media(media="print")
        _assert_fits_paper(page)


def _assert_fits_paper(page: Page) -> None:
    expect(page.get_by_role("navigation")).to_be_hidden()
    expect(page.locator("main button:visible")).to_have_count(0)
    expect(page.locator("thead").first).to_be_visible()
    wide = page.eval_on_selector_all(
        ".scroll", "all => all.filter((each) => each.scrollWidth > each.clientWidth).length"
    )
    assert wide == 0
    assert page.evaluate("document.scrollingElement.scrollWidth") <= A4[0]
