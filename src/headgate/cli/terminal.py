"""Width and colour of the terminal, and what may be written to it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import Any, Final, TextIO, cast

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


_CONTROL: Final = re.compile(
    r"\x1b(?!\[)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f"
    r"\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
"""What controls a terminal, or turns the direction of text, but for line ends, tabs and the
sequences ``ESC [`` of colours and redrawn lines."""


class GuardedStream:
    """The stream of a terminal, on which other controls are shown as escapes.

    Clients choose the names of topics and subscriptions, and a cluster answers with any text: none
    of it may set the title or the clipboard of an administrator's terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write ``text``, escaped where that is needed."""
        return self._stream.write(_CONTROL.sub(lambda found: ascii(found[0])[1:-1], text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def guard() -> None:
    """Guard the standard output and error of this process, where they are terminals."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, GuardedStream) and stream.isatty():
            setattr(sys, name, cast(TextIO, GuardedStream(stream)))
