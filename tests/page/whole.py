"""What holds for each view, whoever serves it."""

from __future__ import annotations

from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect


def headings(page: Page, level: int) -> list[str]:
    """The texts of the headings of a level."""
    return page.get_by_role("heading", level=level).all_inner_texts()


IS_DARK = "matchMedia('(prefers-color-scheme: dark)').matches"


def assert_whole(page: Page, heading: str, screenshot: Path) -> None:
    """A view has its heading, nothing sticks out to the side, axe-core finds nothing serious.

    The dark view of a width differs from the light one in its colours alone, so axe-core looks at
    these alone: each view is also tested in light.
    """
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=screenshot, full_page=True)
    tops = page.eval_on_selector_all(
        "h1, .elsewhere", "all => all.map((each) => each.getBoundingClientRect().top)"
    )
    assert len(tops) == 2, "a heading and the same data elsewhere"
    assert tops == sorted(tops), "the same data elsewhere stand below the view"
    outside = page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
    assert outside <= 0, f"{outside} px stick out"
    of_colours = ["color-contrast"]
    is_dark = page.evaluate(IS_DARK)
    options = {"resultTypes": ["violations"]} | ({"runOnly": of_colours} if is_dark else {})
    report = Axe().run(page, options=options).response
    known = {*of_colours} if is_dark else {*of_colours, "document-title"}
    assert known <= {each["id"] for each in report["passes"]}
    serious = [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in report["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
    assert not serious, "\n".join(serious)
