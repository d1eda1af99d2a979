"""What stands beside something else on one page agrees with it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import OpenPage, go_to
from tests.page.views import subscription_view, topic_view

USED = """async (seconds) => {
  const { usedOf } = await import(new URL("app/limits_table.js", document.baseURI));
  const row = (granted) => ({
    limit: { level: "topic", subject: "t" },
    budget: { dimension: "messages", limit: 500, periodS: 1, inWindow: 500, granted },
  });
  const looks = [0, ...seconds].map((at) => ({
    atMs: 1000 * at, values: new Map([["topic t  messages", row(400 * at).budget]]),
  }));
  return usedOf(row(400 * (seconds.at(-1) ?? 0)), looks);
}"""


@pytest.mark.parametrize(
    ("seconds", "used"), [([], None), ([1], None), ([2, 3], None), ([2, 4], 400), ([5], 400)]
)
def test_the_use_of_a_limit_is_shown_once_it_is_a_mean(
    modules: Page, seconds: list[int], used: int | None
) -> None:
    """A second in which a group passed would show a full limit."""
    assert modules.evaluate(USED, seconds) == used


def test_unacknowledged_messages_are_those_of_the_consumers(open_page: OpenPage) -> None:
    """The report and the statistics are of two instants; one of them is shown."""

    def later(route: Route) -> None:
        stats: dict[str, Any] = route.fetch().json()
        (found,) = stats["subscriptions"].values()
        found["unackedMessages"] = found["consumers"][0]["unackedMessages"] = 77
        route.fulfill(json=stats)

    view = f"{subscription_view('slow-consumer', 'orders')}?paused=1"
    page = open_page(view, prepare=lambda page: page.route("**/stats", later))
    tile = page.locator(".figure", has_text="Delivered, not acknowledged").locator("dd")
    expect(tile).to_have_text("77")
    expect(page.locator('td[data-head="Unacknowledged"]')).to_have_text("77")


def test_each_cause_of_the_legend_is_explained(open_page: OpenPage) -> None:
    page = open_page("now")
    page.get_by_text("What the causes mean").click()
    named = page.locator(".legend[aria-label] .verdict").all_inner_texts()
    assert {"Keeps up", "Settling", "Not known"} < {*named}
    explained = page.locator(".meanings li", has=page.locator(".verdict"))
    assert explained.locator(".verdict").all_inner_texts() == named
    assert all(
        len(text) > len(name) for text, name in zip(explained.all_inner_texts(), named, strict=True)
    )


def test_no_line_breaks_before_a_percent_sign(open_page: OpenPage) -> None:
    unbroken = "100\N{NO-BREAK SPACE}% of the time"
    page = open_page("now")
    sentence = page.locator(".detail", has_text="The topic limit").first
    assert unbroken in (sentence.text_content() or "")
    go_to(page, topic_view("topic-limit"))
    assert unbroken in (page.locator(".lead").text_content() or "")


def test_a_backlog_says_that_its_producers_are_held(open_page: OpenPage) -> None:
    """A consumer that keeps pace with producers that are slowed looks well otherwise."""

    def held(route: Route) -> None:
        answer: dict[str, Any] = route.fetch().json()
        topic = next(each["topic"] for each in answer["subscriptions"])
        answer["publishing"] = [{"topic": topic, "sentence": "2 producers wait"}]
        route.fulfill(json=answer)

    page = open_page("now?paused=1", prepare=lambda page: page.route("**/headgate/explain?*", held))
    expect(page.locator(".detail").first).to_contain_text("Publishing: 2 producers wait")
    expect(page.locator(".detail", has_text="Publishing:")).to_have_count(1)
