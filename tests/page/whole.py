"""What holds for each view, whoever serves it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from tests.page.conftest import PHONE, WIDE

Scheme = Literal["light", "dark"]
Look = tuple[tuple[int, int], Scheme]
"""The size of the window, and the scheme of colours."""

LOOKS: Final[tuple[Look, ...]] = (
    (WIDE, "light"), (WIDE, "dark"), (PHONE, "light"), (PHONE, "dark")
)  # fmt: skip

_DRAWN: Final = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_SIZE: Final = "(all => [all.scrollWidth, all.scrollHeight])(document.documentElement)"
_IS_DARK: Final = "matchMedia('(prefers-color-scheme: dark)').matches"
_JUDGED: Final = """async (options) => {
  const { passes, violations } = await axe.run(options);
  return { passed: passes.map(({ id }) => id), violations };
}"""
_OF_COLOURS: Final = "color-contrast"


def headings(page: Page, level: int) -> list[str]:
    """The texts of the headings of a level."""
    return page.get_by_role("heading", level=level).all_inner_texts()


def take_picture(page: Page, path: Path) -> None:
    """A picture of the whole page, whose file is larger than one of ``page.screenshot``, and takes
    half as long to pack."""
    width, height = page.evaluate(_SIZE)
    session = page.context.new_cdp_session(page)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    options = {"optimizeForSpeed": True, "captureBeyondViewport": True, "clip": clip}
    path.write_bytes(b64decode(session.send("Page.captureScreenshot", options)["data"]))
    session.detach()


def each_look(page: Page, name: str, looks: Iterable[Look] = LOOKS) -> Iterator[str]:
    """Give the open page one look after the other: the window changes its size, and the system its
    scheme. Yields ``name`` with the look behind it."""
    for size, scheme in looks:
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=scheme)
        page.evaluate(_DRAWN)
        yield f"{name}-{size[0]}-{scheme}"


def assert_whole(
    page: Page, heading: str, screenshots: Path, name: str, looks: Iterable[Look] = LOOKS
) -> None:
    """A view has its heading, and with each of these looks nothing sticks out to the side, and
    axe-core finds nothing serious.

    ``screenshots``: the folder for pictures of all looks, whose names begin with ``name``.
    """
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    page.wait_for_load_state("networkidle")
    page.evaluate(AXE_SCRIPT)
    for look in each_look(page, name, looks):
        take_picture(page, screenshots / f"{look}.png")
        _assert_nothing_sticks_out(page, look)
        problems = _serious_ones(page)
        assert not problems, "\n".join([look, *problems])


def _assert_nothing_sticks_out(page: Page, look: str) -> None:
    tops = page.eval_on_selector_all(
        "h1, .elsewhere", "all => all.map((each) => each.getBoundingClientRect().top)"
    )
    assert len(tops) == 2, f"{look}: a heading and the same data elsewhere"
    assert tops == sorted(tops), f"{look}: the same data elsewhere stand below the view"
    outside = page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
    assert outside <= 0, f"{look}: {outside} px stick out"


def _serious_ones(page: Page) -> list[str]:
    """What axe-core finds.

    The dark view of a width differs from the light one in its colours alone, so axe-core looks at
    these alone: each view is also tested in light.
    """
    is_dark = page.evaluate(_IS_DARK)
    options: dict[str, Any] = {"resultTypes": ["violations"], "selectors": False}
    if is_dark:
        options["runOnly"] = [_OF_COLOURS]
    report = page.evaluate(_JUDGED, options)
    assert ({_OF_COLOURS} if is_dark else {_OF_COLOURS, "document-title"}) <= {*report["passed"]}
    return [
        f"{each['id']}: {node['html']} {node['failureSummary']}"
        for each in report["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
