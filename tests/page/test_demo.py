"""Somebody who opens the page during the demo reads the cause of each of its situations off it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from headgate.demo.scenes import MAIN, SCENES, clusters, subjects
from headgate.flow.account.verdict import Verdict
from tests.page.conftest import WIDE, OpenPage, go_to
from tests.page.demo_scene import demo_cluster
from tests.page.scene import Scene
from tests.page.test_each_view import CAUSES
from tests.page.views import subscription_view, topic_view
from tests.page.whole import take_picture

NAMES = CAUSES | {"THROTTLED_BROKER": "Broker limit", "NONE": "Keeps up"}


@pytest.fixture(scope="module", params=clusters(SCENES))
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[str, Scene]]:
    """A broker of the demo with its situations."""
    played = demo_cluster(request.param)
    yield request.param, played
    played.close()


def test_the_views_name_the_cause_of_each(
    open_page: OpenPage, cluster: tuple[str, Scene], artifacts: Path
) -> None:
    name, scene = cluster
    page = open_page("now", url=scene.url)
    take_picture(page, artifacts / f"{name}-now-{WIDE[0]}.png")
    waiting = 0
    for subject, situation in subjects():
        if subject.cluster != name:
            continue
        short = subject.topic.partition("://")[2]
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=short, exact=True))
        row = row.filter(has=page.get_by_role("link", name=subject.subscription, exact=True))
        if situation.verdict is Verdict.NONE and row.count() == 0:
            continue  # nothing was with its consumer at this instant
        waiting += 1
        expect(row.locator(".verdict")).to_have_text(NAMES[situation.verdict.value])
    total = sum(subject.cluster == name for subject, _ in subjects())
    if waiting < total:
        expect(page.get_by_text("no backlog.")).to_contain_text(f"{total - waiting} ")
    if name == MAIN:
        _assert_views_behind(page, artifacts)


def _assert_views_behind(page: Page, artifacts: Path) -> None:
    go_to(page, topic_view("clicks"))
    expect(page.locator(".growth")).to_contain_text("the dispatch limit of the topic was set to")
    take_picture(page, artifacts / "demo-topic.png")
    go_to(page, subscription_view("orders", "billing"))
    expect(page.locator(".lead .verdict")).to_have_text("Consumer")
    take_picture(page, artifacts / "demo-subscription.png")
