"""Width and colour of the terminal."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Final

WIDTH_PIPED: Final = 100
"""Characters in a line where there is no terminal to ask."""


def has_color() -> bool:
    """Whether the output is a terminal with colours, and no environment variable forbids them."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return is_terminal()


def can_redraw() -> bool:
    """Whether the output is a terminal on which lines can be replaced."""
    return is_terminal() and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Characters in a line."""
    return shutil.get_terminal_size((WIDTH_PIPED, 24)).columns


def is_terminal() -> bool:
    """Whether a person sees the output."""
    return sys.stdout.isatty()
