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
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from tests.page.agent_scene import AgentScene
from tests.page.scene import Scene, ten_situations

ARTIFACTS = ROOT / "artifacts" / "page"
"""Where screenshots are left: to be looked at, and kept by CI."""

WIDE, PHONE = (1280, 900), (390, 844)

OpenPage = Callable[..., Page]


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


@pytest.fixture
def open_page(browser: Browser, scene: Scene) -> Iterator[OpenPage]:
    """``open_page(view, size, scheme, url, search)`` opens a view and waits until it has data, or
    asks for credentials.

    At the end of the test no page may have asked another host, run into an error of a script or of
    the Content-Security-Policy, or shown a dialog.
    """
    contexts = []
    problems: list[str] = []

    def opened(
        view: str = "now",
        size: tuple[int, int] = WIDE,
        scheme: Any = "light",
        url: str = "",
        search: str = "",
    ) -> Page:
        home = url or scene.url
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
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
        data.or_(page.locator(".sign-in")).first.wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not problems, "\n".join(problems)


def _note(line: Any, problems: list[str]) -> None:
    # A browser also reports every answer that is not a success, such as a policy that is not set.
    if line.type == "error" and not line.text.startswith("Failed to load resource"):
        problems.append(f"the console says: {line.text}")


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """An empty folder for screenshots."""
    shutil.rmtree(ARTIFACTS, ignore_errors=True)
    ARTIFACTS.mkdir(parents=True)
    return ARTIFACTS
