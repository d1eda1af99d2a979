"""The page over an agent: which views there are, which cluster they show, and what is not known."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import jwt
import pytest
from playwright.sync_api import Locator, Page, expect
from starlette.types import ASGIApp

from headgate.agent.configuration import PortSettings
from headgate.app.agent_access import TokenGate, token_verifier
from tests.page.agent_scene import PRODUCTION, STAGING, TOPICS, AgentScene
from tests.page.conftest import OpenPage, go_to
from tests.page.scene import HOSTILE
from tests.page.whole import LOOKS, assert_whole

SECRET = b"s" * 32


def topic_view(name: str) -> str:
    return f"topic/{quote(TOPICS + name, safe='')}"


def subscription_view(topic: str, name: str) -> str:
    return f"subscription/{quote(TOPICS + topic, safe='')}/{quote(name, safe='')}"


VIEWS = {
    "now": "Backlogs now",
    "limits": "Limits in force",
    "storage": "Quotas and storage",
    "cluster": "Clusters",
    topic_view("emails"): "acme/shop/emails",
    topic_view("fine"): "acme/shop/fine",
    subscription_view("orders", "billing"): "billing",
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_whole_and_every_request_of_it_is_answered(
    open_page: OpenPage, agent: AgentScene, artifacts: Path, view: str
) -> None:
    agent.refused.clear()
    name = view.replace(quote(TOPICS, safe=""), "").replace("/", "-")
    assert_whole(open_page(view, url=agent.url), VIEWS[view], artifacts, f"agent-{name}")
    assert agent.refused == []


def menu(page: Page) -> list[str]:
    return page.get_by_role("navigation").get_by_role("link").all_inner_texts()


def test_the_menu_has_what_an_agent_can_know(open_page: OpenPage, agent: AgentScene) -> None:
    assert menu(open_page("now", url=agent.url)) == [
        "Now",
        "Limits",
        "Quotas and storage",
        "Cluster",
    ]
    assert "Broker" in menu(open_page("now"))


def test_a_link_to_a_view_of_a_broker_says_that_there_is_none(
    open_page: OpenPage, agent: AgentScene
) -> None:
    page = open_page("adaptive", url=agent.url)
    expect(page.get_by_text("This server cannot fill the view “adaptive”")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Backlogs now")


def chooser(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Cluster")


def topics(page: Page) -> set[str]:
    """Those of the rows, once there are some."""
    names = page.locator("tbody td:first-child a.name:first-child")
    names.first.wait_for()
    return set(names.all_inner_texts())


def test_the_cluster_that_is_chosen_stands_in_the_url_and_in_every_request(
    open_page: OpenPage, agent: AgentScene
) -> None:
    page = open_page("now?tenant=acme", url=agent.url)
    # Without a choice it is the first one.
    expect(chooser(page)).to_have_value(PRODUCTION)
    assert "cluster=production" in page.url
    assert len(topics(page)) > 5
    agent.requests.clear()
    chooser(page).select_option(STAGING)
    expect(page.locator("tbody")).to_have_count(1)
    assert re.search(r"\?cluster=staging#/now\?tenant=acme$", page.url)
    expect(page).to_have_title("Now · staging · Headgate")
    asked = [path for _, path in agent.requests if path.startswith("/admin/")]
    assert asked
    assert [path for path in asked if "cluster=staging" not in path] == []
    page.reload()
    expect(chooser(page)).to_have_value(STAGING)
    expect(page.locator("tbody")).to_have_count(1)
    page.get_by_role("link", name="Limits").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Limits in force")
    assert "cluster=staging" in page.url


def test_the_browser_goes_back_to_the_cluster_before(
    open_page: OpenPage, agent: AgentScene
) -> None:
    page = open_page("now", url=agent.url)
    chooser(page).select_option(STAGING)
    expect(page.locator("tbody")).to_have_count(1)
    page.go_back()
    expect(chooser(page)).to_have_value(PRODUCTION)
    expect(page.get_by_role("link", name="acme/shop/emails")).to_be_visible()


def test_another_cluster_is_not_asked_for_the_topic_of_this_one(
    open_page: OpenPage, agent: AgentScene
) -> None:
    page = open_page(topic_view("emails"), url=agent.url)
    agent.refused.clear()
    chooser(page).select_option(STAGING)
    expect(page.get_by_role("heading", level=1)).to_have_text("Backlogs now")
    assert agent.refused == []


def test_a_cluster_that_is_not_watched_is_told(open_page: OpenPage, agent: AgentScene) -> None:
    page = open_page("cluster", url=agent.url, search="?cluster=other")
    expect(chooser(page)).to_have_value("other")
    page.get_by_role("link", name="Now").click()
    expect(page.get_by_role("alert")).to_contain_text("Cluster other is not watched")
    chooser(page).select_option(STAGING)
    expect(page.locator("tbody")).to_have_count(1)


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("article").filter(has=page.get_by_role("heading", name=name))


def test_the_clusters_tell_how_they_are(open_page: OpenPage, agent: AgentScene) -> None:
    page = open_page("cluster", url=agent.url)
    of_production, of_staging = card(page, PRODUCTION), card(page, STAGING)
    expect(of_production).to_contain_text("It has answered for 4 min")
    for name, value in (("Brokers", "3"), ("Topics", "11"), ("Subscriptions", "10")):
        figure = of_production.locator(".figure").filter(has_text=name).first
        expect(figure.locator("dd")).to_have_text(value)
    expect(of_production.locator(".figure").filter(has_text="Requests")).to_contain_text("of 50/s")
    expect(of_production).to_contain_text("1 backlog quota reached, or within a day of it")
    # Without superuser nobody knows the brokers: that is no zero.
    brokers = of_staging.locator(".figure").filter(has_text="Brokers")
    expect(brokers.locator("dd")).to_have_text("—the cluster does not tell")
    expect(of_staging).to_contain_text("the role is no superuser")


def test_a_cluster_leads_to_its_backlogs_without_loading_the_page_anew(
    open_page: OpenPage, agent: AgentScene
) -> None:
    page = open_page("cluster", url=agent.url)
    page.evaluate("window.isSamePage = true")
    card(page, STAGING).get_by_role("link", name="Backlogs of staging").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Backlogs now")
    expect(chooser(page)).to_have_value(STAGING)
    assert topics(page) == {"acme/shop/orders"}
    page.get_by_role("link", name="Cluster", exact=True).click()
    card(page, PRODUCTION).get_by_role("link", name="Topic limit 1").click()
    expect(page.get_by_role("link", name="acme/shop/emails")).to_be_visible()
    assert topics(page) == {"acme/shop/emails"}
    assert page.evaluate("window.isSamePage") is True


def test_every_verdict_is_dashed(open_page: OpenPage, agent: AgentScene) -> None:
    page = open_page("storage", url=agent.url)
    for view in ("now", "cluster", topic_view("emails"), subscription_view("orders", "billing")):
        go_to(page, view)
        shown = page.locator("main .verdict:not(.legend .verdict)")
        shown.first.wait_for()
        styles = shown.evaluate_all("all => all.map(one => getComputedStyle(one).borderStyle)")
        assert styles
        assert set(styles) == {"dashed"}


def test_a_topic_begins_with_its_subscription_and_no_constant(
    open_page: OpenPage, agent: AgentScene
) -> None:
    page = open_page(topic_view("emails"), url=agent.url)
    expect(page.locator(".lead")).to_have_text(re.compile("^sender: the topic limit of 60 msg/s"))


def test_what_differs_between_two_looks_is_a_change(open_page: OpenPage) -> None:
    scene = AgentScene([PRODUCTION])
    try:
        reader = scene.subscription("fine", "fast")
        reader.consumers, reader.acked_per_s = 0, 0
        scene.play(120)
        page = open_page(subscription_view("fine", "fast"), url=scene.url)
        row = page.get_by_role("row").filter(
            has_text="the last consumer of fast left (c-0), within"
        )
        expect(row).to_contain_text("before this look")
        expect(page.get_by_text("what differs between two looks")).to_be_visible()
        expect(page.locator(".chart .mark")).to_have_count(1)
    finally:
        scene.close()


def test_limits_that_hold_come_first_with_their_use(open_page: OpenPage, agent: AgentScene) -> None:
    page = open_page("limits", url=agent.url)
    table = page.get_by_role("table").first
    row = table.get_by_role("row").filter(has_text="acme/shop/emails")
    expect(row).to_contain_text("60 msg/s")
    expect(row).to_contain_text("100 %")
    expect(row).to_contain_text("topic policy")
    held = table.get_by_role("row").filter(has_text="acme/shop/held")
    # A publish limit that holds producers: how many wait is not known.
    expect(held.locator('[data-head="Who waits"]')).to_have_text("—")


def test_storage_has_quotas_and_sizes_and_no_invented_disk(
    open_page: OpenPage, agent: AgentScene
) -> None:
    page = open_page("storage", url=agent.url)
    quota = page.get_by_role("table").first.get_by_role("row").filter(has_text="acme/shop/quota")
    expect(quota.first).to_contain_text("4.77 MiB, its policy is not known")
    expect(quota.first.locator('[data-head="Evicted"]')).to_have_text("—")
    expect(page.locator(".not-known")).to_contain_text("a cluster does not tell its disks")
    row = page.get_by_role("table").nth(1).get_by_role("row").filter(has_text="acme/shop/audit")
    expect(row.first.locator('[data-head="Kept by"]')).to_have_text("archive")


def test_what_was_not_read_is_not_known_and_nothing_can_be_changed(
    open_page: OpenPage, agent: AgentScene
) -> None:
    page = open_page(topic_view("fine"), url=agent.url)
    expect(page.locator(".not-known").first).to_contain_text("Not known")
    expect(page.get_by_text("No limit is in force")).to_have_count(0)
    for view in (topic_view("emails"), subscription_view("orders", "billing")):
        go_to(page, view)
        assert page.get_by_role("group", name="Actions").count() == 0


def test_a_subscription_shows_the_consumers_of_the_last_look(
    open_page: OpenPage, agent: AgentScene
) -> None:
    page = open_page(subscription_view("orders", "billing"), url=agent.url)
    row = page.get_by_role("row").filter(has_text="c-0")
    expect(row.locator('[data-head="Permits free"]')).to_have_text("0")
    expect(row.locator('[data-head="Gets"]')).to_have_text("—")
    go_to(page, subscription_view("parted", "all"))
    expect(page.get_by_role("row").filter(has_text="c-0")).to_have_count(2)


def test_a_topic_without_a_backlog_opens_by_its_name(
    open_page: OpenPage, agent: AgentScene
) -> None:
    page = open_page("now", url=agent.url)
    page.get_by_label("Open a topic").fill("acme/shop/fine")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("acme/shop/fine")


def test_commands_name_the_agent_and_the_cluster(open_page: OpenPage, agent: AgentScene) -> None:
    page = open_page("now", url=agent.url)
    page.locator(".elsewhere summary").click()
    command = f"headgate explain --count 100 --admin-url {agent.url} --cluster {PRODUCTION}"
    expect(page.locator(".elsewhere")).to_contain_text(command)


def test_a_name_that_is_markup_stays_text(open_page: OpenPage, agent: AgentScene) -> None:
    page = open_page("cluster", url=agent.url)
    for view in (
        "now",
        "limits",
        "storage",
        topic_view(HOSTILE),
        subscription_view(HOSTILE, HOSTILE),
    ):
        go_to(page, view)
        page.get_by_text(HOSTILE).first.wait_for()
        assert page.locator("main img").count() == 0


@pytest.fixture(scope="module")
def single() -> Iterator[AgentScene]:
    """An agent with one cluster, which stops to answer."""
    played = AgentScene([PRODUCTION])
    yield played
    played.close()


def test_with_one_cluster_there_is_nothing_to_choose(
    open_page: OpenPage, single: AgentScene
) -> None:
    page = open_page("cluster", url=single.url)
    expect(page.get_by_role("heading", level=1)).to_have_text("Cluster")
    expect(card(page, PRODUCTION)).to_contain_text("It has answered for")
    assert chooser(page).count() == 0
    assert "?" not in page.url


def test_a_cluster_that_is_away_keeps_its_last_figures_in_grey(
    open_page: OpenPage, single: AgentScene, artifacts: Path
) -> None:
    single.faults[PRODUCTION].gone = {f"broker-{index}.example.com:8080" for index in range(3)}
    single.play(240)
    page = open_page("cluster", url=single.url)
    away = card(page, PRODUCTION)
    expect(away.get_by_role("alert")).to_contain_text("production has not answered for")
    topics_known = away.locator(".figure").filter(has_text="Topics").locator("dd")
    expect(topics_known).to_have_text("11")
    assert (
        away.locator(".figures").evaluate("one => getComputedStyle(one).filter") == "grayscale(1)"
    )
    assert_whole(page, "Cluster", artifacts, "agent-cluster-away", LOOKS[:1])
    page.get_by_role("link", name="Backlogs of production").click()
    # The page's own data are new, and those of the cluster are not.
    expect(page.get_by_role("alert")).to_contain_text("The figures are those of the last looks.")
    assert_whole(page, "Backlogs now", artifacts, "agent-now-away", LOOKS[:1])


def tokens_needed(app: ASGIApp) -> ASGIApp:
    key = base64.b64encode(SECRET).decode()
    verifier = token_verifier(PortSettings(secret_key=f"data:;base64,{key}", roles=("ops",)))
    assert verifier is not None
    return TokenGate(app, verifier, ("ops",), lambda: 1_763_719_200.0)


def test_a_reader_with_a_token_stays_signed_in_over_all_clusters(open_page: OpenPage) -> None:
    scene = AgentScene(guard=tokens_needed)
    try:
        page = open_page("now", url=scene.url)
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        # Names of clusters are data, too.
        expect(page.locator("body")).not_to_contain_text(STAGING)
        page.get_by_label("Token", exact=True).fill(jwt.encode({"sub": "ops"}, SECRET, "HS256"))
        page.get_by_role("button", name="Sign in with the token").click()
        expect(page.locator(".reader")).to_contain_text("ops")
        chooser(page).select_option(STAGING)
        expect(page.locator("tbody")).to_have_count(1)
        expect(page.locator(".reader")).to_contain_text("ops")
    finally:
        scene.close()
