"""The browser that the tests of the page drive: Chromium, or Chrome, of the machine itself.

Playwright can download a browser of its own. The distribution's gets its security updates, and a
set-up needs no further host for it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

PACKAGE: Final = "chromium"
_PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def known_browser() -> Path | None:
    """Where it is; None if none is on the PATH."""
    found = (shutil.which(name) for name in _PROGRAMS)
    return next((Path(path) for path in found if path is not None), None)
