"""The page under a keyboard, without its broker, and with very many subscriptions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import OpenPage
from tests.page.scene import Scene, many_subscriptions
from tests.page.views import topic_view

TOPICS, EACH = 100, 100
ROWS_MAX = 100
ANSWER_BYTES_MAX = 256 * 1024
PAINT_MS_MAX = 1_000

ROWS_SHOWN = """
new MutationObserver((_, watch) => {
  if (!document.querySelector("tbody tr")) return;
  requestAnimationFrame(() => { window.rowsShownMs = performance.now(); });
  watch.disconnect();
}).observe(document, {subtree: true, childList: true});
"""


def focused(page: Page) -> str:
    text: str = page.evaluate("document.activeElement.innerText ?? ''")
    return text.strip()


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the element with this text has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if focused(page) == name:
            return
    raise AssertionError(f"Tab never leads to {name!r}")


def test_a_keyboard_reaches_everything(open_page: OpenPage) -> None:
    page = open_page("limits")
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the content"
    for name in ("Headgate", "Now", "Limits", "Quotas and storage"):
        tab_to(page, name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Quotas and storage")
    # What was opened has the focus, so that a screen reader reads it and Tab goes on from there.
    expect(page.locator("#content")).to_be_focused()


def test_the_skip_link_stays_in_its_view(open_page: OpenPage) -> None:
    page = open_page(topic_view("topic-limit"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    expect(page.get_by_role("heading", level=1)).to_have_text("public/default/topic-limit")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_the_focus_stays_while_figures_change(open_page: OpenPage, scene: Scene) -> None:
    page = open_page("now?every=2", own_context=True, prepare=lambda page: page.clock.install())
    tab_to(page, "billing")
    before = len(scene.requests)
    page.clock.run_for(5_000)
    page.wait_for_timeout(300)
    assert len(scene.requests) > before
    assert focused(page) == "billing"


def test_every_focus_is_visible(open_page: OpenPage) -> None:
    page = open_page("now")
    for _ in range(25):
        page.keyboard.press("Tab")
        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert style != "none", focused(page)


def test_a_pause_asks_nothing(open_page: OpenPage, scene: Scene) -> None:
    page = open_page("now?every=2")
    page.get_by_role("button", name="Pause").click()
    expect(page).to_have_url(re.compile("paused=1"))
    page.wait_for_load_state("networkidle")
    before = len(scene.requests)
    page.wait_for_timeout(2_500)
    assert len(scene.requests) == before
    expect(page.locator(".freshness")).to_contain_text("paused")


@pytest.fixture
def mortal(scene: Scene) -> Iterator[Scene]:
    """The scene, reachable again at the end."""
    yield scene
    scene.is_reachable = True


def test_figures_of_a_broker_that_went_away_are_grey_and_stay(
    open_page: OpenPage, mortal: Scene
) -> None:
    page = open_page("now?every=2", own_context=True, prepare=lambda page: page.clock.install())
    figures = page.locator(".figure dd").all_inner_texts()
    rows = page.locator("tbody td.number").all_inner_texts()
    mortal.is_reachable = False
    page.clock.run_for(6_000)
    expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached")
    page.clock.run_for(20_000)
    page.locator("section.is-stale").wait_for()
    assert page.locator(".figure dd").all_inner_texts() == figures
    assert page.locator("tbody td.number").all_inner_texts() == rows
    for part in (".figures", "table"):
        look = page.locator(part).first.evaluate("node => getComputedStyle(node).filter")
        assert look == "grayscale(1)"
    mortal.is_reachable = True
    page.clock.run_for(6_000)
    page.locator("section:not(.is-stale) .freshness.fresh").wait_for()


def test_without_a_first_answer_there_is_no_figure(open_page: OpenPage, mortal: Scene) -> None:
    page = open_page("now")
    mortal.is_reachable = False
    page.evaluate("location.hash = '#/broker'")
    expect(page.get_by_role("alert")).to_contain_text("no data yet")
    assert page.locator(".figure").count() == 0
    assert page.get_by_role("table").count() == 0


@pytest.fixture(scope="module")
def many() -> Iterator[Scene]:
    """A broker with 10,000 subscriptions that all have a backlog."""
    played = many_subscriptions(TOPICS, EACH)
    yield played
    played.close()


def test_ten_thousand_subscriptions_are_painted_within_a_second(
    open_page: OpenPage, many: Scene
) -> None:
    page = open_page("now", url=many.url, own_context=True)
    page.context.add_init_script(ROWS_SHOWN)
    sizes: list[int] = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    page.reload()
    page.locator("tbody").first.wait_for()
    page.wait_for_function("window.rowsShownMs")
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert painted < PAINT_MS_MAX
    assert page.evaluate("window.rowsShownMs") < PAINT_MS_MAX
    assert 0 < page.locator("tbody").count() <= ROWS_MAX
    expect(page.locator(".figures")).to_contain_text(f"{TOPICS * EACH:,}")
    expect(page.get_by_text("The 100 largest backlogs of 10,000;")).to_be_visible()
    # Only the worst travel.
    assert max(sizes) < ANSWER_BYTES_MAX
    assert page.get_by_role("link", name=f"busy-{TOPICS - 1:03}").count() == EACH
