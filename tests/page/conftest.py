"""A browser, scenes for it, and pages that report what a user would not see."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from devkit.browser import known_browser
from devkit.paths import ROOT
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from tests.page.agent_scene import AgentScene
from tests.page.scene import Scene, ten_situations

ARTIFACTS = ROOT / "artifacts" / "page"
"""Where screenshots are left: to be looked at, and kept by CI."""

WIDE, PHONE = (1280, 900), (390, 844)

OpenPage = Callable[..., Page]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin with an empty folder for screenshots, which the processes of a lane share. A second
    attempt of single tests keeps those of the first."""
    is_whole = not any("::" in each for each in session.config.args)
    if is_whole and not hasattr(session.config, "workerinput"):
        shutil.rmtree(ARTIFACTS, ignore_errors=True)
    ARTIFACTS.mkdir(parents=True, exist_ok=True)


@pytest.fixture(scope="session")
def scene() -> Iterator[Scene]:
    """The situations of :mod:`tests.page.scene`, which no test changes."""
    played = ten_situations()
    yield played
    played.close()


@pytest.fixture(scope="session")
def agent() -> Iterator[AgentScene]:
    """An agent that watches two clusters, which no test changes."""
    played = AgentScene()
    yield played
    played.close()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright's driver."""
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """The machine's own browser."""
    path = known_browser()
    assert path is not None, "./dev test page installs a browser"
    # Chromium's sandbox refuses root, and CI is root in its container.
    words = ["--no-sandbox"] if os.geteuid() == 0 else []
    running = playwright.chromium.launch(executable_path=path, args=words)
    yield running
    running.close()


@pytest.fixture(scope="session")
def shared_context(browser: Browser) -> Iterator[BrowserContext]:
    """What the pages of most tests share. In a context of its own each page would load and compile
    all modules anew, which takes three times as long as the page itself. The page keeps nothing
    that another tab of the context would see."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def open_page(browser: Browser, scene: Scene, shared_context: BrowserContext) -> Iterator[OpenPage]:
    """``open_page(view, size, scheme, url, search)`` opens a view in a tab of its own and waits
    until it has data, or asks for credentials. With ``own_context`` the test may set the clock and
    the scripts of the tab's context.

    At the end of the test no page may have asked another host, run into an error of a script or of
    the Content-Security-Policy, or shown a dialog.
    """
    opened_ones: list[Page | BrowserContext] = []
    problems: list[str] = []

    def opened(
        view: str = "now",
        size: tuple[int, int] = WIDE,
        scheme: Any = "light",
        url: str = "",
        search: str = "",
        *,
        own_context: bool = False,
    ) -> Page:
        home = url or scene.url
        context = browser.new_context() if own_context else shared_context
        page = context.new_page()
        opened_ones.append(context if own_context else page)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=scheme)
        page.on(
            "request",
            lambda request: (
                request.url.startswith((f"{home}/", "data:"))
                or problems.append(f"another host was asked: {request.url}")
            ),
        )
        page.on("pageerror", lambda error: problems.append(f"a script failed: {error}"))
        page.on("console", lambda line: _note(line, problems))
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        page.goto(f"{home}/headgate/{search}#/{view}")
        data = page.locator(".freshness.fresh", has_text="old")
        past = page.locator(".freshness", has_text="the tables reach")
        data.or_(past).or_(page.locator(".sign-in")).first.wait_for()
        return page

    yield opened
    for each in opened_ones:
        each.close()
    assert not problems, "\n".join(problems)


def _note(line: Any, problems: list[str]) -> None:
    # A browser also reports every answer that is not a success, such as a policy that is not set.
    if line.type == "error" and not line.text.startswith("Failed to load resource"):
        problems.append(f"the console says: {line.text}")


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """The folder for screenshots."""
    return ARTIFACTS
