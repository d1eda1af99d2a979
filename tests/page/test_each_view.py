"""Each view says what it is for, at every width and in both schemes, to every user."""

from __future__ import annotations

import json
import re
import shlex
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import Call, OpenPage, go_to
from tests.page.scene import BACKLOGS, HOSTILE
from tests.page.views import (
    HOSTILE_VIEWS,
    VIEWS,
    browse_view,
    file_name,
    subscription_view,
    topic_view,
)
from tests.page.whole import assert_whole, headings

CAUSES = {
    "CONSUMER": "Consumer",
    "NO_CONSUMER": "No consumer",
    "THROTTLED_SUBSCRIPTION": "Subscription limit",
    "THROTTLED_TOPIC": "Topic limit",
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_whole(open_page: OpenPage, artifacts: Path, view: str) -> None:
    assert_whole(open_page(view), VIEWS[view], artifacts, file_name(view))


def test_now_names_the_cause_of_each_backlog(open_page: OpenPage) -> None:
    page = open_page("now")
    rows = page.get_by_role("row")
    for backlog in BACKLOGS:
        row = rows.filter(has=page.get_by_role("link", name=f"public/default/{backlog.topic}"))
        if backlog.verdict != "NONE":
            expect(row.first.locator(".verdict")).to_have_text(CAUSES[backlog.verdict])
        elif row.count():  # a message is with its consumer at this instant
            expect(row.first.locator(".verdict")).to_have_text("Keeps up")
    expect(page.get_by_role("heading", name="Producers that wait")).to_be_visible()
    expect(page.get_by_text("1 producer waits for the topic's publish limit")).to_be_visible()


def test_filters_stand_in_the_url_and_hold_after_a_reload(open_page: OpenPage) -> None:
    page = open_page("now")
    page.get_by_role("combobox", name="Cause").select_option(label="Topic limit")
    names = page.locator("tbody a.name").all_inner_texts
    assert set(names()) == {"public/default/topic-limit", "billing", "shipping"}
    page.get_by_role("searchbox").fill("shipping")
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("shipping")
    expect(page.locator("tbody")).to_have_count(1)
    page.get_by_role("searchbox").fill("no such name")
    expect(page.get_by_text("No subscription matches the filters.")).to_be_visible()


def test_a_topic_shows_both_sides_and_its_limits(open_page: OpenPage) -> None:
    page = open_page(topic_view("topic-limit"))
    assert {"Publishing", "Dispatching", "Limits in force", "Backlog quotas"} <= {
        *headings(page, 2)
    }
    row = page.get_by_role("row").filter(has_text="Dispatch, topic")
    expect(row).to_contain_text("15 msg/s")
    expect(row).to_contain_text("topic policy")
    page.get_by_role("link", name="shipping").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("shipping")


def test_a_publish_limit_shows_who_waits(open_page: OpenPage) -> None:
    page = open_page(topic_view("publish-limit"))
    row = page.get_by_role("row").filter(has_text="topic rate")
    expect(row).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Publish, topic")).to_contain_text("5 msg/s")


def test_a_subscription_shows_its_consumers(open_page: OpenPage) -> None:
    page = open_page(subscription_view("slow-consumer", "orders"))
    # The changes name it, too.
    row = page.get_by_role("row", name=re.compile("^slow-consumer-reader"))
    expect(row.locator('[data-head="State"]')).to_have_text("busy: its receiver queue is full")
    expect(row.locator('[data-head="Oldest of them"]')).to_contain_text("1 min")
    expect(page.locator(".figure", has_text="Acknowledged out of order")).to_contain_text("0")
    expect(page.locator(".lead .verdict")).to_have_text("Consumer")
    go_to(page, subscription_view("topic-limit", "billing"))
    row = page.get_by_role("row", name=re.compile("^topic-limit-reader"))
    expect(row.locator('[data-head="State"]')).to_have_text("hungry: has room for messages")


def test_limits_name_what_waits_for_them(open_page: OpenPage) -> None:
    page = open_page("limits")
    table = page.get_by_role("table").first
    expect(table.get_by_role("row").filter(has_text="topic-limit")).to_contain_text("15 msg/s")


def test_the_use_of_a_limit_is_the_mean_of_what_the_page_saw(open_page: OpenPage) -> None:
    """A single period says little, since messages pass in groups."""
    answers = (_with_granted(look) for look in count())

    def given(page: Page) -> None:
        page.route("**/headgate/limits?*", lambda route: route.fulfill(json=next(answers)))

    page = open_page("limits?every=2", prepare=given)
    used = page.get_by_role("row").filter(has_text="bursts").locator('[data-head="Used"]')
    expect(used).to_contain_text("80 %")


def _with_granted(look: int) -> dict[str, Any]:
    """The answer of a look, five seconds after the one before: 400 of 500 messages have passed
    since, and 3 in the last period."""
    budget = {
        "dimension": "messages", "limit": 100, "periodS": 1.0, "inWindow": 3, "debt": 0,
        "granted": 400 * look, "text": "100 msg/s", "source": "topic policy",
    }  # fmt: skip
    limit = {
        "level": "topic", "subject": "persistent://public/default/bursts", "waiters": 1,
        "waitingS": 1.0, "budgets": [budget],
    }  # fmt: skip
    return {"at": f"2025-11-21T10:00:{5 * look:02}.000Z", "limitsTotal": 1, "limits": [limit]}


def test_storage_names_the_quota_and_what_keeps_the_disk(open_page: OpenPage) -> None:
    page = open_page("storage")
    table = page.get_by_role("table").first
    expect(table.get_by_role("row").filter(has_text="quota-exceeded").first).to_be_visible()
    expect(page.get_by_role("heading", name="Topics that keep most of it")).to_be_visible()


def test_a_quota_has_its_band(open_page: OpenPage) -> None:
    quotas: dict[str, dict[str, Any]] = {
        "20 min 9 min to 1 h":
            {"secondsToBreach": 1_200, "secondsToBreachEarliest": 540,
             "secondsToBreachLatest": 3_600},
        "20 min 9 min at the earliest": {"secondsToBreach": 1_200, "secondsToBreachEarliest": 540},
        "30 s steady":
            {"secondsToBreach": 30, "secondsToBreachEarliest": 29.4,
             "secondsToBreachLatest": 30.2},
        "40 s": {"secondsToBreach": 40},
        "exceeded": {"secondsToBreach": 0, "exceeded": True},
    }  # fmt: skip
    state = {"type": "size", "limit": 1 << 20, "policy": "producer_request_hold", "sentence": ""}
    breaches = [
        {"topic": f"persistent://public/default/filling-{number}", "quota": state | quota}
        for number, quota in enumerate(quotas.values())
    ]

    def answered(route: Route) -> None:
        route.fulfill(json=route.fetch().json() | {"quotas": breaches})

    page = open_page("storage", prepare=lambda page: page.route("**/explain?*", answered))
    rows = page.get_by_role("row").filter(has_text="filling-")
    expect(rows.locator('[data-head="Breaks in"]')).to_have_text([*quotas])


def test_browse_leads_to_a_message(open_page: OpenPage) -> None:
    page = open_page("browse")
    for name in ("public", "default", "nobody-reads"):
        page.get_by_role("main").get_by_role("link", name=name, exact=True).click()
    page.get_by_role("button", name="First message of the backlog").click()
    expect(page.get_by_role("article")).to_contain_text('"topic": "nobody-reads"')


def test_browse_says_in_words_which_policies_hold_and_where_each_is_set(
    open_page: OpenPage,
) -> None:
    page = open_page(browse_view("topic-limit"))
    for name, value, place in (
        ("Dispatch limit of the topic", "15 msg/s", "topic policy"),
        ("Message TTL", "2 h", "namespace policy"),
        ("Delayed delivery", "any delay", "broker setting"),
        ("Publish limit", "none", "nowhere"),
        ("Backlog quotas", "none", "nowhere"),
    ):
        row = page.get_by_role("row", name=re.compile(f"^{name} "))
        expect(row).to_have_text(f"{name}{value}{place}")
    expect(page.get_by_text("It has no schema.")).to_be_visible()
    go_to(page, browse_view("quota-exceeded"))
    row = page.get_by_role("row", name=re.compile("^Backlog quotas "))
    expect(row).to_contain_text("293 KiB, consumer_backlog_eviction")


def test_words_beside_a_tag_keep_their_distance(open_page: OpenPage) -> None:
    """The templates drop a line break beside a tag."""
    page = open_page("adaptive")
    expect(page.locator(".lead")).to_contain_text("Enabled=true the broker slows")
    expect(page.locator(".lead")).to_contain_text("ObserveOnly=true it only says")


def test_a_name_that_is_markup_stays_text(open_page: OpenPage) -> None:
    page = open_page("limits")
    for view, places in HOSTILE_VIEWS.items():
        go_to(page, view)
        page.get_by_text(HOSTILE).first.wait_for()
        assert page.get_by_text(HOSTILE).count() >= places, view
        assert page.locator("main img").count() == 0, view


def test_a_message_that_is_markup_stays_text(open_page: OpenPage) -> None:
    page = open_page(browse_view(HOSTILE))
    page.get_by_role("button", name="First message of the backlog").click()
    expect(page.get_by_role("article")).to_contain_text(HOSTILE)
    assert page.locator("main img").count() == 0


def test_a_name_is_one_word_of_the_commands_to_copy(open_page: OpenPage) -> None:
    """Clients choose names, and an administrator may copy a command into a shell."""
    page = open_page("limits")
    for view in (topic_view(HOSTILE), subscription_view(HOSTILE, HOSTILE), browse_view(HOSTILE)):
        go_to(page, view)
        page.get_by_text(HOSTILE).first.wait_for()
        page.locator(".elsewhere summary").click()
        curl, command = page.locator(".elsewhere code").all_inner_texts()[:2]
        assert shlex.split(command)[-1] == f"persistent://public/default/{HOSTILE}", view
        assert shlex.split(curl)[0] == "curl", view
        assert len(shlex.split(curl)) == 2, view


@pytest.mark.parametrize("name", ["o'k;id", '"$(id)"', "`id`", "a\\b c", "", "-x"])
def test_words_of_a_shell_and_labels_of_promql(call: Call, name: str) -> None:
    assert shlex.split(call("format.js", "quoted", name)) == [name]
    assert json.loads(call("format.js", "labelValue", name)) == name
