"""What changed before a backlog grew, and one incident to hand on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import OpenPage, go_to
from tests.page.views import subscription_view, topic_view

PLACE = re.compile("(before|as) the backlog began")
LIMITED = "the dispatch limit of the topic was set to 15 msg/s"


def changed(page: Page) -> Any:
    """The rows of the list of changes."""
    table = page.get_by_role("table").filter(
        has=page.get_by_role("columnheader", name="What changed")
    )
    return table.locator("tbody")


def test_the_change_before_the_growth_is_pointed_out(open_page: OpenPage) -> None:
    page = open_page(topic_view("topic-limit"))
    expect(page.locator(".growth")).to_contain_text(
        re.compile(f"^The backlog began at .* {LIMITED}")
    )
    row = changed(page).filter(has_text=LIMITED)
    # It came in the second in which the backlog began, or within the round of the history after it.
    expect(row).to_contain_text(PLACE)
    assert page.get_by_text(PLACE).count() == 1
    expect(page.locator(".chart .mark.before")).to_have_count(1)
    expect(page.locator(".chart .mark")).to_have_count(changed(page).count())


def test_a_subscription_shows_its_own_changes_and_those_of_its_topic(open_page: OpenPage) -> None:
    page = open_page(subscription_view("topic-limit", "billing"))
    texts = changed(page).all_inner_texts()
    assert any(LIMITED in text for text in texts)
    assert any("a consumer of billing connected (topic-limit-reader)" in text for text in texts)
    assert not any("shipping" in text for text in texts)


def test_what_a_quota_evicts_is_a_change_and_no_consumption(open_page: OpenPage) -> None:
    page = open_page(topic_view("quota-exceeded"))
    expect(changed(page).filter(has_text="a backlog quota evicted")).to_have_count(1)
    go_to(page, "now")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="quota-exceeded"))
    expect(row.first.locator("td").last).to_have_text(re.compile(r"^—\s*[\d,]+ evicted"))
    go_to(page, subscription_view("quota-exceeded", "orders"))
    expect(page.locator(".figure", has_text="Empty in")).to_contain_text("not consumed")


@pytest.fixture
def incident(open_page: OpenPage, tmp_path: Path) -> Any:
    page = open_page(topic_view("topic-limit"))
    with page.expect_download() as found:
        page.get_by_role("button", name="Save this incident as JSON").click()
    assert found.value.suggested_filename.startswith("incident-public-default-topic-limit-")
    found.value.save_as(tmp_path / "incident.json")
    return json.loads((tmp_path / "incident.json").read_text())


def test_an_incident_as_a_file_has_all_that_is_known(incident: Any) -> None:
    assert (incident["format"], incident["formatVersion"]) == ("headgate-incident", 1)
    report = incident["report"]
    assert report["topic"] == "persistent://public/default/topic-limit"
    assert len(report["subscriptions"][0]["timeline"]["verdicts"]) == 60
    assert LIMITED in [change["sentence"] for change in report["changes"]["changes"]]
    assert report["limits"][0]["budgets"][0]["limit"] == 15
    assert incident["stats"]["subscriptions"].keys() == {"billing", "shipping"}
    assert incident["server"]["cluster"] == "standalone"
    assert incident["server"]["version"]


def test_its_link_opens_the_same_view(open_page: OpenPage, incident: Any) -> None:
    view = incident["link"].partition("#/")[2]
    assert parse_qs(view.partition("?")[2])["until"] == [incident["report"]["at"]]
    page = open_page(view)
    expect(page.get_by_role("heading", level=1)).to_have_text("public/default/topic-limit")
    expect(page.get_by_text("This link is about")).to_contain_text("the marks of the last hour")
    expect(page.locator(".chart .linked")).to_have_count(1)
    # The link of a view that a link opened is about the same hour.
    expect(page.get_by_role("link", name="Link to this hour")).to_have_attribute(
        "href", re.compile(re.escape(view.partition("?")[2]))
    )
    page.get_by_role("button", name="Show the present").click()
    expect(page.get_by_text("This link is about")).to_have_count(0)


def test_a_link_to_a_time_that_is_gone_says_where_it_is(open_page: OpenPage) -> None:
    page = open_page(f"{topic_view('topic-limit')}?until=2001-02-03T04:05:06.000Z&hours=1")
    notice = page.get_by_text("This link is about")
    expect(notice).to_contain_text("2001-02-03 03:05:06 to 04:05:06 UTC")
    expect(notice).to_contain_text("headgate pipeline serve")
    page = open_page(f"{topic_view('topic-limit')}?until=nonsense")
    expect(page.get_by_role("heading", level=1)).to_have_text("public/default/topic-limit")
    expect(page.get_by_text("This link is about")).to_have_count(0)


def test_a_link_opens_its_hour_at_the_page_over_the_tables(open_page: OpenPage) -> None:
    """Behind the host of ``headgate pipeline serve``, whose answers this test gives."""
    until = "2001-02-03T04:05:06.000Z"
    asked: list[str] = []

    def given(page: Page) -> None:
        server = {"live": False, "history": True}
        page.route("**/server.json", lambda route: route.fulfill(json=server))
        page.route("**/admin/v2/headgate/history**", lambda route: _answer_of_tables(route, asked))

    page = open_page(
        f"{subscription_view('topic-limit', 'billing')}?until={until}&hours=1", prepare=given
    )
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "public/default/topic-limit · billing"
    )
    expect(page.get_by_role("heading", name="What held it when")).to_be_visible()
    with page.expect_response(lambda response: "/timeline" in response.url):
        page.goto(
            f"{page.url.partition('#')[0]}#/{topic_view('topic-limit')}?until={until}&hours=1"
        )
    expect(page.get_by_role("heading", level=1)).to_have_text("Timelines")
    one, of_topic = (parse_qs(url.partition("?")[2]) for url in asked if "/timeline" in url)
    assert one["until"] == of_topic["until"] == [until]
    assert one["since"] == of_topic["since"] == ["2001-02-03T03:05:06.000Z"]
    assert one["subscription"] == ["billing"]
    assert of_topic["text"] == ["public/default/topic-limit"]


def _answer_of_tables(route: Route, asked: list[str]) -> None:
    url = route.request.url
    asked.append(url)
    whole = {"since": "2001-01-01T00:00:00+00:00", "until": "2001-03-01T00:00:00+00:00"}
    timeline = {"start": whole["since"], "stepS": 60, "verdicts": ["NONE"], "backlog": [0]}
    more = {"timeline": timeline, "runs": [], "runsMore": 0, "subscriptions": [], "more": 0}
    route.fulfill(json=whole | (more if "/timeline" in url else {}))
