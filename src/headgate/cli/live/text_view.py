"""An answer as the text of a command, drawn anew with each answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rich.text import Text

from headgate.cli.live.poller import Answer
from headgate.cli.live.screen import Freshness
from headgate.cli.live.status import status_line

_HELP: Final = "q quit   ↑↓ scroll   p pause"
_PAGE: Final = {"page up": -1, "page down": 1, " ": 1}
_STEP: Final = {"up": -1, "k": -1, "down": 1, "j": 1}
_WIDTH_TRIED: Final = 100


class TextView:
    """One answer as text, which may be longer than the screen."""

    def __init__(
        self, path: str, answer: Answer, text_of: Callable[[Answer, int], str],
        help_text: str = _HELP,
    ) -> None:  # fmt: skip
        """``text_of`` gives the text of an answer for a width, with the codes of its colours."""
        self.path = path
        self.is_paused = False
        self.is_done = False
        self._answer = answer
        self._text_of = text_of
        self._help_text = help_text
        self._first = 0
        self._height = 1

    def on_answer(self, answer: Answer) -> None:
        """Take a newer answer, if its text can be made."""
        self._text_of(answer, _WIDTH_TRIED)
        self._answer = answer

    def on_key(self, key: str) -> None:
        """Scroll, pause or end."""
        if key in ("q", "escape"):
            self.is_done = True
        elif key == "p":
            self.is_paused = not self.is_paused
        elif key in _STEP:
            self._first += _STEP[key]
        elif key in _PAGE:
            self._first += _PAGE[key] * max(1, self._height - 1)
        elif key == "home":
            self._first = 0

    def lines(self, width: int, height: int, freshness: Freshness) -> Sequence[Text]:
        """The part of the text that the screen has room for, and the line of status."""
        self._height = max(1, height - 1)
        text = self._text_of(self._answer, width).rstrip("\n").split("\n")
        self._first = max(0, min(self._first, len(text) - self._height))
        shown = [Text.from_ansi(line) for line in text[self._first : self._first + self._height]]
        if freshness.problem:
            for line in shown:
                line.stylize("dim")
        for line in shown:
            line.truncate(width, overflow="ellipsis")
        below = len(text) - self._first - len(shown)
        shown += [Text()] * (self._height - len(shown))
        keys = self._help_text + (f"   {below:,} lines below" if below else "")
        return [*shown, status_line(keys, freshness, width, is_paused=self.is_paused)]
