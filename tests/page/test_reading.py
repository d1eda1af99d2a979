"""Rows stay where a reader looks, limits say who waits, and no word stands twice."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.page.conftest import PHONE, WIDE, OpenPage
from tests.page.views import subscription_view, topic_view

Change = Callable[[dict[str, Any]], dict[str, Any]]
TOPIC = "persistent://public/default/busy"
AT = "2025-11-21T10:00:{:02}.000Z"


def budget(**more: Any) -> dict[str, Any]:
    return {
        "dimension": "messages", "limit": 100, "periodS": 1.0, "inWindow": 30, "debt": 0,
        "granted": None, "text": "100 msg/s", "source": "topic policy",
    } | more  # fmt: skip


def limit(level: str = "topic", **more: Any) -> dict[str, Any]:
    return {
        "level": level, "subject": "" if level.endswith("broker") else TOPIC, "waiters": 0,
        "waitingS": 1.0, "longestWaiting": [], "budgets": [budget()],
    } | more  # fmt: skip


def waiting(*names: str) -> list[dict[str, Any]]:
    return [{"topic": TOPIC, "subscription": name, "waitingS": 1.0} for name in names]


def limits_page(open_page: OpenPage, *limits: dict[str, Any], size: Any = WIDE) -> Page:
    page = open_page("now", size)
    answer = {"at": AT.format(0), "limitsTotal": len(limits), "limits": limits}
    page.route("**/headgate/limits?*", lambda route: route.fulfill(json=answer))
    page.get_by_role("link", name="Limits").click()
    page.locator("tbody").first.wait_for()
    return page


def cell(page: Page, head: str) -> Locator:
    return page.locator(f'td[data-head="{head}"]')


@pytest.mark.parametrize(
    ("found", "shown", "used", "left"),
    [
        ({}, "100 msg/s", "30 % 30 msg/s", "70 msg/s"),
        ({"inWindow": 130}, "100 msg/s", "130 % 130 msg/s", "0 msg/s"),
        ({"inWindow": None}, "100 msg/s", "—", "—"),
        ({"limit": None, "text": "20 msg/s above the publish rate"},
         "20 msg/s above the publish rate", "—", "—"),
        # One unit in a row, and the one of the sentences: 500,000 is not 488 KiB to its reader.
        ({"dimension": "bytes", "limit": 500_000, "inWindow": 125_000},
         "500,000 B/s", "25 % 125,000 B/s", "375,000 B/s"),
        ({"periodS": 60.0}, "100 msg per 1 min", "30 % 30 msg per 1 min", "70 msg per 1 min"),
    ],
)  # fmt: skip
def test_a_limit_has_its_headroom(
    open_page: OpenPage, found: dict[str, Any], shown: str, used: str, left: str
) -> None:
    page = limits_page(open_page, limit(budgets=[budget(**found)]))
    expect(cell(page, "Limit")).to_have_text(shown)
    expect(cell(page, "Used")).to_have_text(used)
    expect(cell(page, "Headroom")).to_have_text(left)


def test_what_one_period_used_is_not_taken_for_a_mean(open_page: OpenPage) -> None:
    """A period may be full below a limit that holds nothing: no bar, and no headroom."""
    page = limits_page(open_page, limit(budgets=[budget(inWindow=100, granted=500)]))
    expect(cell(page, "Used")).to_have_text("not measured yet")
    expect(cell(page, "Used").locator("svg")).to_have_count(0)
    expect(cell(page, "Headroom")).to_have_text("—")


def test_what_a_long_period_used_is_a_mean(open_page: OpenPage) -> None:
    page = limits_page(open_page, limit(budgets=[budget(granted=500, periodS=60.0)]))
    expect(cell(page, "Used")).to_have_text("30 % 30 msg per 1 min")
    expect(cell(page, "Headroom")).to_have_text("70 msg per 1 min")


def test_a_limit_names_those_that_wait(open_page: OpenPage) -> None:
    page = limits_page(open_page, limit(waiters=2, longestWaiting=waiting("billing", "audit")))
    who = cell(page, "Who waits")
    assert who.get_by_role("link").all_inner_texts() == ["billing", "audit"]
    expect(who).not_to_contain_text("more")
    who.get_by_role("link", name="audit").click()
    expect(page).to_have_url(re.compile("#/subscription/.*busy/audit$"))


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_of_hundreds_that_wait_the_first_are_named(open_page: OpenPage, size: Any) -> None:
    names = [f"s{number}" for number in range(5)]
    page = limits_page(
        open_page, limit("broker", waiters=300, longestWaiting=waiting(*names)), size=size
    )
    who = cell(page, "Who waits")
    expect(who.get_by_role("link")).to_have_count(6)
    expect(who.get_by_role("link").first).to_have_text("public/default/busy / s0")
    who.get_by_role("link", name="and 295 more").click()
    expect(page.get_by_role("combobox", name="Cause")).to_have_value("THROTTLED_BROKER")


def test_a_name_that_the_reader_may_not_see_is_no_link(open_page: OpenPage) -> None:
    hidden = {"topic": "another topic of another tenant", "subscription": "", "waitingS": 1.0}
    page = limits_page(open_page, limit("broker", waiters=1, longestWaiting=[hidden]))
    expect(cell(page, "Who waits")).to_have_text("another topic of another tenant")
    expect(cell(page, "Who waits").get_by_role("link")).to_have_count(0)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (limit(), "none"),
        (limit(waiters=None), "—"),
        (limit("subscription", subject=f"{TOPIC} / s", waiters=1), "this subscription"),
        (limit("publish_topic", waiters=1), "1 producer"),
        (limit("publish_broker", waiters=12), "12 producers"),
        # An agent may know how many, and not who.
        (limit(waiters=3, longestWaiting=[]), "3 subscriptions"),
    ],
)
def test_who_waits_in_other_words(open_page: OpenPage, found: dict[str, Any], said: str) -> None:
    expect(cell(limits_page(open_page, found), "Who waits")).to_have_text(said)


def test_a_limit_at_which_something_waits_now_and_then_stays_where_it_is(
    open_page: OpenPage,
) -> None:
    page = open_page("limits?every=2")
    found: dict[str, Any] = {"at": AT.format(0), "limits": [limit(waiters=2, waitingS=1.0)]}
    page.route("**/headgate/limits?*", lambda route: route.fulfill(json={"limitsTotal": 1} | found))
    page.reload()
    holding = page.locator(".figure", has_text="Hold something").locator("dd")
    expect(cell(page, "Who waits")).to_have_text("2 subscriptions")
    found |= {"at": AT.format(3), "limits": [limit(waiters=0, waitingS=1.5)]}
    expect(cell(page, "Who waits")).to_have_text("none")
    expect(holding).to_have_text("1")
    found["at"] = AT.format(40)
    expect(holding).to_have_text("0")


ORDER = """async ([steps]) => {
  const { nextOrder } = await import(new URL("app/order.js", document.baseURI));
  let order = null;
  return steps.map(([values, more]) => {
    const rows = Object.entries(values).map(([key, value]) => ({ key, value: value ?? -Infinity }));
    order = nextOrder(order, rows, { by: "", at: "", ...more });
    return `${order.keys.join("")}${order.isOutdated ? "!" : ""}`;
  });
}"""

FIRST = {"a": 900, "b": 500, "c": 480, "d": 3}


@pytest.mark.parametrize(
    ("values", "more", "expected"),
    [
        # By a little, no row moves: neither of two that are nearly equal, nor among small ones.
        ({**FIRST, "c": 600}, {}, "abcd"),
        ({"a": 900, "b": 500, "d": 3, "c": 1}, {}, "abcd"),
        ({**FIRST, "c": 800}, {}, "acbd"),
        ({**FIRST, "c": 800}, {"isHeld": True}, "abcd!"),
        ({**FIRST, "c": 800}, {"isHeld": True, "isAsked": True}, "acbd"),
        ({**FIRST, "c": 800}, {"isHeld": True, "by": "age"}, "acbd"),
        # What is new goes to its place, and while somebody reads to the end.
        ({**FIRST, "n": 600}, {}, "anbcd"),
        ({**FIRST, "n": 600}, {"isHeld": True}, "abcdn!"),
        ({**FIRST, "n": 5_000}, {}, "nabcd"),
        # What is gone leaves its place only when nobody reads.
        ({"a": 900, "c": 480, "d": 3}, {}, "acd"),
        ({"a": 900, "c": 480, "d": 3}, {"isHeld": True}, "abcd"),
        ({}, {}, ""),
        # A growth that is not known is the least, and one below zero is less than one above.
        ({"a": None, "b": -5, "c": 5, "d": None}, {}, "cbad"),
    ],
)
def test_rows_move_only_for_a_reason(
    open_page: OpenPage, values: dict[str, Any], more: dict[str, Any], expected: str
) -> None:
    page = open_page("now")
    assert page.evaluate(ORDER, [[[FIRST, {}], [values, more]]]) == ["abcd", expected]


class Changing:
    """The start page, whose answer a test changes."""

    def __init__(self, open_page: OpenPage) -> None:
        self.page = open_page("now?every=2", own_context=True)
        self._first = self.page.evaluate(TOP)
        self._change: Change = lambda answer: answer
        self.page.route("**/headgate/explain?*", self._answer)
        self.page.clock.install()
        self.page.reload()
        self.page.locator(".freshness.fresh", has_text="old").wait_for()

    def _answer(self, route: Route) -> None:
        route.fulfill(json=self._change(deepcopy(self._first)))

    def names(self) -> list[str]:
        return self.page.locator("tbody a.name:last-child").all_inner_texts()

    def ask_again(self, change: Change) -> None:
        self._change = change
        with self.page.expect_response("**/headgate/explain?*"):
            self.page.clock.run_for(6_000)
        self.page.clock.run_for(1_100)

    def sentence(self) -> Locator:
        return self.page.get_by_text("Sorted by largest backlog at")


TOP = """async () => {
  const { get } = await import(new URL("app/api.js", document.baseURI));
  return get("admin/v2/headgate/explain?count=100&timeline=true");
}"""


def reversed_sizes(answer: dict[str, Any]) -> dict[str, Any]:
    found = answer["subscriptions"]
    sizes = [each["backlogMessages"] for each in found]
    for each, size in zip(found, reversed(sizes), strict=True):
        each["backlogMessages"] = size
    return answer


def without_the_second(answer: dict[str, Any]) -> dict[str, Any]:
    del answer["subscriptions"][1]
    return answer


def test_rows_stay_under_the_pointer_until_the_reader_asks(open_page: OpenPage) -> None:
    now = Changing(open_page)
    names = now.names()
    now.page.locator("tbody").nth(2).hover()
    now.ask_again(reversed_sizes)
    expect(now.sentence()).to_contain_text("the order has changed since")
    assert now.names() == names
    now.page.get_by_role("button", name="Sort again").click()
    expect(now.sentence()).not_to_contain_text("the order has changed")
    assert now.names() != names
    # Nobody reads now: the rows follow the figures.
    now.ask_again(lambda answer: answer)
    assert now.names() == names


def test_a_row_that_has_the_focus_stays_when_its_backlog_is_gone(open_page: OpenPage) -> None:
    now = Changing(open_page)
    names = now.names()
    link = now.page.locator("tbody").nth(1).get_by_role("link").last
    link.focus()
    now.ask_again(without_the_second)
    expect(link).to_be_focused()
    assert now.names() == names
    row = now.page.locator("tbody").nth(1)
    expect(row).to_contain_text("It is not among these backlogs any more.")
    assert row.locator("td.number").all_inner_texts() == ["—"] * 5
    now.page.locator("main").focus()
    now.page.clock.run_for(1_100)
    assert now.names() == [names[0], *names[2:]]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"drainsInS": 90.0}, "1 min 30 s"),
        ({"breaksInS": 90.0, "breaksQuota": "size"}, "— quota breaks in 1 min 30 s"),
        ({"breaksInS": 0, "breaksQuota": "size"}, "— quota exceeded"),
        ({"drainsInS": 20.0, "breaksInS": 90.0, "breaksQuota": "time"},
         "20 s age quota breaks in 1 min 30 s"),
    ],
)  # fmt: skip
def test_a_row_says_what_becomes_of_its_backlog(
    open_page: OpenPage, found: dict[str, Any], said: str
) -> None:
    def changed(answer: dict[str, Any]) -> dict[str, Any]:
        none = {"drainsInS": None, "breaksInS": None, "evictedMessages": 0}
        answer["subscriptions"] = [answer["subscriptions"][0] | none | found]
        return answer

    now = Changing(open_page)
    now.ask_again(changed)
    expect(cell(now.page, "Empty / breaks in")).to_have_text(said)


def test_a_second_cause_that_is_as_strong_is_named(open_page: OpenPage) -> None:
    def changed(answer: dict[str, Any]) -> dict[str, Any]:
        second = {"second": "THROTTLED_TOPIC", "bystander": False}
        answer["subscriptions"] = [answer["subscriptions"][0] | second]
        return answer

    now = Changing(open_page)
    now.ask_again(changed)
    expect(cell(now.page, "Cause")).to_contain_text("about equally: Topic limit")


def test_no_command_has_its_name_twice(open_page: OpenPage) -> None:
    page = open_page(topic_view("topic-limit"))
    page.locator(".elsewhere summary").click()
    page.get_by_role("button", name="Dispatch limit…").click()
    for place in (page.get_by_role("dialog"), page.locator(".elsewhere")):
        text = place.inner_text()
        assert "headgate " in text
        assert not re.search(r"\b(headgate|curl)\s+\1\b", text)
    page.get_by_role("dialog").get_by_role("button", name="Copy the curl command").wait_for()


def test_words_of_the_protocol_are_explained_where_they_stand(open_page: OpenPage) -> None:
    page = open_page(subscription_view("slow-consumer", "orders"))
    permits = page.locator(".figure", has_text="Permits free")
    expect(permits).to_contain_text("messages that the consumers have asked for and not got")
    expect(page.get_by_text("Without any, its receiver queue is full")).to_be_visible()
    expect(page.locator(".states").first).to_contain_text("consumer's receiver queue full")
    # A keyboard opens what the colours mean.
    meaning = page.get_by_text("the consumer is the bottleneck", exact=False).last
    expect(meaning).to_be_hidden()
    page.get_by_text("What the causes mean").focus()
    page.keyboard.press("Enter")
    expect(meaning).to_be_visible()
