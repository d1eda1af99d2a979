"""Takes the pictures of the page that the README and the guides show.

    python -m tests.page.take_pictures

The situations are those of the demo after twenty minutes of virtual time, and the two clusters of
the tests of the agent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from devkit.browser import browser_arguments, known_browser
from devkit.paths import ROOT
from playwright.sync_api import Page, sync_playwright

from headgate.demo.scenes import MAIN
from tests.page.agent_scene import AgentScene
from tests.page.demo_scene import demo_cluster
from tests.page.views import subscription_view, topic_view

PICTURES: Final = ROOT / "docs" / "guide" / "img"
PLAYED_S: Final = 20 * 60
WIDTH, HEIGHT_MAX = 1280, 1480


def main() -> None:
    """Take all of them."""
    agent, scene = AgentScene(), demo_cluster(MAIN, PLAYED_S)
    path = known_browser()
    assert path is not None, "./dev test page installs a browser"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=browser_arguments())
        page = browser.new_page()
        for name, url, view in (
            ("page-now", scene.url, "now"),
            ("page-topic", scene.url, topic_view("clicks")),
            ("page-subscription", scene.url, subscription_view("orders", "billing")),
            ("page-clusters", agent.url, "cluster"),
        ):
            _take(page, f"{url}/headgate/#/{view}", PICTURES / f"{name}.png")
    agent.close()
    scene.close()


def _take(page: Page, url: str, path: Path) -> None:
    page.set_viewport_size({"width": WIDTH, "height": 640})
    page.goto(url)
    page.locator(".freshness.fresh", has_text="old").wait_for()
    page.wait_for_timeout(500)  # charts are drawn at the width that the browser gives them
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": WIDTH, "height": min(height, HEIGHT_MAX)})
    page.screenshot(path=path)


if __name__ == "__main__":
    main()
