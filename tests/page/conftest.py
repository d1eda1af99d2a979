"""A browser, scenes for it, and pages that report what a user would not see."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from devkit.browser import browser_arguments, known_browser
from devkit.paths import ROOT
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from headgate.page.app import PREFIX
from tests.page.agent_scene import AgentScene
from tests.page.files_scene import FilesScene
from tests.page.scene import Scene, ten_situations

ARTIFACTS = ROOT / "artifacts" / "page"
"""Where screenshots are left: to be looked at, and kept by CI."""

WIDE, PHONE = (1280, 900), (390, 844)

OpenPage = Callable[..., Page]
Call = Callable[..., Any]

CALL = """async ([module, name, values]) =>
  (await import(new URL(`app/${module}`, document.baseURI)))[name](...values)"""
FOLLOW = """(view) => new Promise((done) => {
  const main = document.querySelector("main");
  const before = main.querySelector("section");
  new MutationObserver((_, watch) => {
    if (before.isConnected) return;
    watch.disconnect();
    done();
  }).observe(main, { childList: true });
  location.hash = `#/${view}`;
})"""


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
    running = playwright.chromium.launch(executable_path=path, args=browser_arguments())
    yield running
    running.close()


def _new_context(browser: Browser) -> BrowserContext:
    """Wide and light, and colours change at once."""
    window = {"width": WIDE[0], "height": WIDE[1]}
    return browser.new_context(viewport=window, color_scheme="light", reduced_motion="reduce")


@pytest.fixture(scope="session")
def shared_context(browser: Browser) -> Iterator[BrowserContext]:
    """What the pages of most tests share. In a context of its own each page would load and compile
    all modules anew, which takes three times as long as the page itself. The page keeps nothing
    that another tab of the context would see."""
    context = _new_context(browser)
    yield context
    context.close()


@pytest.fixture(scope="session")
def files() -> Iterator[FilesScene]:
    """The page's files without a broker."""
    served = FilesScene()
    yield served
    served.close()


@pytest.fixture(scope="session")
def modules(shared_context: BrowserContext, files: FilesScene) -> Page:
    """A tab that shows nothing, and may import the modules of the page. It stays open, so that the
    process that the tabs of the context share does not end with each test."""
    page = shared_context.new_page()
    page.goto(files.url)
    return page


@pytest.fixture(scope="session")
def call(modules: Page) -> Call:
    """``call(module, function, *arguments)`` calls a pure function of the page."""
    return lambda module, name, *values: modules.evaluate(CALL, [module, name, values])


@pytest.fixture
def open_page(
    browser: Browser, shared_context: BrowserContext, modules: Page, request: pytest.FixtureRequest
) -> Iterator[OpenPage]:
    """``open_page(view, size, url, search)`` opens a view in a tab of its own and waits
    until it has data, or asks for credentials. Without ``url`` it is of the broker of
    :func:`scene`. ``prepare`` gets the tab before it asks for anything: for routes, whose answers
    the test gives. With ``own_context`` it may set the clock and the scripts of the context.

    At the end of the test no page may have asked another host, run into an error of a script or of
    the Content-Security-Policy, or shown a dialog.
    """
    assert not modules.is_closed()  # it keeps the process of all tabs
    opened_ones: list[Page | BrowserContext] = []
    problems: list[str] = []

    def opened(
        view: str = "now",
        size: tuple[int, int] = WIDE,
        url: str = "",
        search: str = "",
        *,
        own_context: bool = False,
        prepare: Callable[[Page], object] = lambda _: None,
    ) -> Page:
        home = url or request.getfixturevalue("scene").url
        context = _new_context(browser) if own_context else shared_context
        page = context.new_page()
        opened_ones.append(context if own_context else page)
        if size != WIDE:
            page.set_viewport_size({"width": size[0], "height": size[1]})
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
        prepare(page)
        page.goto(f"{home}{PREFIX}{search}#/{view}")
        _wait_for_data(page)
        return page

    yield opened
    for each in opened_ones:
        each.close()
    assert not problems, "\n".join(problems)


def go_to(page: Page, view: str) -> None:
    """Follow a link to another view in a tab that shows one, and wait until it has data."""
    page.evaluate(FOLLOW, view)
    _wait_for_data(page)


def _wait_for_data(page: Page) -> None:
    data = page.locator(".freshness.fresh", has_text="old")
    past = page.locator(".freshness", has_text="the tables reach")
    data.or_(past).or_(page.locator(".sign-in")).first.wait_for()


def _note(line: Any, problems: list[str]) -> None:
    # A browser also reports every answer that is not a success, such as a policy that is not set.
    if line.type == "error" and not line.text.startswith("Failed to load resource"):
        problems.append(f"the console says: {line.text}")


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """The folder for screenshots."""
    return ARTIFACTS
