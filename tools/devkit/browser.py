"""The browser that the tests of the page drive: Chromium, or Chrome, of the machine itself.

Playwright can download a browser of its own. The distribution's gets its security updates, and a
set-up needs no further host for it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

PACKAGE: Final = "chromium-headless-shell"
"""Chromium without windows, menus and profiles, which no test of the page looks at: what shows a
page is the same, and takes half as much processor time."""
OTHER_PACKAGE: Final = "chromium"
"""What releases have that lack :data:`PACKAGE`."""
_PROGRAMS: Final = (
    PACKAGE, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"
)  # fmt: skip


def known_browser() -> Path | None:
    """Where it is; None if none is on the PATH."""
    found = (shutil.which(name) for name in _PROGRAMS)
    return next((Path(path) for path in found if path is not None), None)


def browser_arguments() -> list[str]:
    """How to start it."""
    # One process for all tabs of a context: each of its own costs as much as a page that it shows.
    arguments = ["--process-per-site", "--renderer-process-limit=1"]
    # Chromium's sandbox refuses root, and CI is root in its container.
    return [*arguments, "--no-sandbox"] if os.geteuid() == 0 else arguments
