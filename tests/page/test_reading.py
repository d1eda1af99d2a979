"""Rows stay where a reader looks, limits say who waits, and no word stands twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any
from urllib.parse import quote

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
    answer = {"at": AT.format(0), "limitsTotal": len(limits), "limits": limits}

    def given(page: Page) -> None:
        page.route("**/headgate/limits?*", lambda route: route.fulfill(json=answer))

    page = open_page("limits", size, prepare=given)
    page.locator("tbody").first.wait_for()
    return page


def numbered(limits: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each of a topic of its own, so that they are rows of one page."""
    return [
        {**each, "subject": each["subject"].replace(TOPIC, f"{TOPIC}-{number}")}
        for number, each in enumerate(limits)
    ]


def cell(page: Page, head: str) -> Locator:
    return page.locator(f'td[data-head="{head}"]')


HEADROOM: list[tuple[dict[str, Any], str, str, str]] = [
    ({}, "100 msg/s", "30 % 30 msg/s", "70 msg/s"),
    ({"inWindow": 130}, "100 msg/s", "130 % 130 msg/s", "0 msg/s"),
    ({"inWindow": None}, "100 msg/s", "—", "—"),
    ({"limit": None, "text": "20 msg/s above the publish rate"},
     "20 msg/s above the publish rate", "—", "—"),
    # One unit in a row, and the one of the sentences: 500,000 is not 488 KiB to its reader.
    ({"dimension": "bytes", "limit": 500_000, "inWindow": 125_000},
     "500,000 B/s", "25 % 125,000 B/s", "375,000 B/s"),
    ({"periodS": 60.0}, "100 msg per 1 min", "30 % 30 msg per 1 min", "70 msg per 1 min"),
    # What a long period used is a mean. A short one may be full below a limit that holds nothing.
    ({"granted": 500, "periodS": 60.0},
     "100 msg per 1 min", "30 % 30 msg per 1 min", "70 msg per 1 min"),
    ({"inWindow": 100, "granted": 500}, "100 msg/s", "not measured yet", "—"),
]  # fmt: skip


def test_a_limit_has_its_headroom(open_page: OpenPage) -> None:
    limits = numbered(limit(budgets=[budget(**found)]) for found, *_ in HEADROOM)
    page = limits_page(open_page, *limits)
    for head, texts in zip(
        ("Limit", "Used", "Headroom"), zip(*(said for _, *said in HEADROOM), strict=True),
        strict=True,
    ):  # fmt: skip
        expect(cell(page, head)).to_have_text([*texts])
    # There is no bar where nothing is known, nor for what one period used.
    bars = [used.locator("svg").count() for used in cell(page, "Used").all()]
    assert bars == [int("%" in used) for _, _, used, _ in HEADROOM]


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


def test_who_waits_in_other_words(open_page: OpenPage) -> None:
    limits = {
        "this subscription": limit("subscription", subject=f"{TOPIC} / s", waiters=1),
        "1 producer": limit("publish_topic", waiters=1),
        "12 producers": limit("publish_broker", waiters=12),
        # An agent may know how many, and not who.
        "3 subscriptions": limit(waiters=3, longestWaiting=[]),
        # Those at which nothing waits are of other tables.
        "none": limit(),
        "—": limit(waiters=None),
    }
    page = limits_page(open_page, *numbered(limits.values()))
    expect(cell(page, "Who waits")).to_have_text([*limits])


def test_a_limit_at_which_something_waits_now_and_then_stays_where_it_is(
    open_page: OpenPage,
) -> None:
    found: dict[str, Any] = {"at": AT.format(0), "limits": [limit(waiters=2, waitingS=1.0)]}

    def given(page: Page) -> None:
        page.route(
            "**/headgate/limits?*", lambda route: route.fulfill(json={"limitsTotal": 1} | found)
        )

    page = open_page("limits?every=2", prepare=given)
    holding = page.locator(".figure", has_text="Hold something").locator("dd")
    expect(cell(page, "Who waits")).to_have_text("2 subscriptions")
    found |= {"at": AT.format(3), "limits": [limit(waiters=0, waitingS=1.5)]}
    expect(cell(page, "Who waits")).to_have_text("none")
    expect(holding).to_have_text("1")
    found["at"] = AT.format(40)
    expect(holding).to_have_text("0")


ORDER = """async (steps) => {
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
    modules: Page, values: dict[str, Any], more: dict[str, Any], expected: str
) -> None:
    assert modules.evaluate(ORDER, [[FIRST, {}], [values, more]]) == ["abcd", expected]


class Changing:
    """The start page, whose answer a test changes."""

    def __init__(self, open_page: OpenPage) -> None:
        self._first: dict[str, Any] = {}
        self._change: Change = lambda answer: answer
        self.page = open_page("now?every=2", own_context=True, prepare=self._prepare)

    def _prepare(self, page: Page) -> None:
        page.clock.install()
        page.route("**/headgate/explain?*", self._answer)

    def _answer(self, route: Route) -> None:
        self._first = self._first or route.fetch().json()
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


def test_a_row_says_what_becomes_of_its_backlog(open_page: OpenPage) -> None:
    rows: dict[str, dict[str, Any]] = {
        "1 min 30 s": {"drainsInS": 90.0},
        "— quota breaks in 1 min 30 s": {"breaksInS": 90.0, "breaksQuota": "size"},
        "— quota exceeded": {"breaksInS": 0, "breaksQuota": "size"},
        "20 s age quota breaks in 1 min 30 s":
            {"drainsInS": 20.0, "breaksInS": 90.0, "breaksQuota": "time"},
    }  # fmt: skip

    def changed(answer: dict[str, Any]) -> dict[str, Any]:
        # The first backlog with each of them, and one whose second cause is as strong.
        first = answer["subscriptions"][0]
        none = {"drainsInS": None, "breaksInS": None, "evictedMessages": 0}
        second = {"second": "THROTTLED_TOPIC", "bystander": False}
        found = [first | none | row for row in rows.values()] + [first | none | second]
        answer["subscriptions"] = [
            each | {"subscription": f"s{number}"} for number, each in enumerate(found)
        ]
        return answer

    now = Changing(open_page)
    now.ask_again(changed)
    expect(cell(now.page, "Empty / breaks in")).to_have_text([*rows, "—"])
    causes = cell(now.page, "Cause")
    expect(causes.filter(has_text="about equally")).to_have_count(1)
    expect(causes.last).to_contain_text("about equally: Topic limit")


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


def test_a_limit_leads_to_its_own_subscription_whatever_the_name(open_page: OpenPage) -> None:
    """A client chooses names: one must not lead to another topic or subscription."""
    names = [
        (f"{TOPIC}-partition-3", "a", TOPIC),
        (f"{TOPIC}-partition-03", "a", f"{TOPIC}-partition-03"),
        (f"{TOPIC}-partition-1234567890", "a", f"{TOPIC}-partition-1234567890"),
        ("persistent://public/default/-partition-3", "a", ""),
        (TOPIC, "a / b", TOPIC),
    ]
    limits = [limit("subscription", subject=f"{topic} / {name}") for topic, name, _ in names]
    page = limits_page(open_page, *limits)
    links = cell(page, "Of").get_by_role("link")
    for place, (topic, name, shown) in enumerate(names):
        href = "/".join(quote(each, safe="") for each in (shown or topic, name))
        expect(links.nth(place)).to_have_attribute("href", f"#/subscription/{href}")
