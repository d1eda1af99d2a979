"""The loop of a live view: ask, draw, read keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import click
from rich.text import Text

from headgate.cli.live.poller import Answer, Outcome

KEY_WAIT_S: Final = 0.1
"""How long the loop waits for a key before it looks for an answer."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """How far what is drawn can be trusted."""

    age_s: int
    """Since the last answer arrived."""
    problem: str
    """Why there is no newer one; empty if the last request was answered."""
    every_s: float


class View(Protocol):
    """What is drawn."""

    @property
    def path(self) -> str:
        """What to ask the admin API for. When it changes, the loop asks at once."""

    @property
    def is_paused(self) -> bool:
        """Whether to ask for nothing."""

    @property
    def is_done(self) -> bool:
        """Whether to end."""

    def on_answer(self, answer: Answer) -> None:
        """Take a newer answer.

        Raises:
            ClickException: the answer is none that the view can show; it keeps the one before.
        """

    def on_key(self, key: str) -> None:
        """Act on a key."""

    def lines(self, width: int, height: int, freshness: Freshness) -> Sequence[Text]:
        """The lines of a screen of this size, at most ``height``."""


class Terminal(Protocol):
    """Where it is drawn, and where keys come from."""

    def size(self) -> tuple[int, int]:
        """Columns and lines."""

    def keys(self, wait_s: float) -> Sequence[str]:
        """The keys since the last call; waits for one for up to ``wait_s``."""

    def draw(self, lines: Sequence[Text]) -> None:
        """Show these lines in place of all others."""


class Asking(Protocol):
    """Where answers come from: a :class:`~headgate.cli.live.poller.Poller`."""

    def begin(self, path: str) -> bool:
        """Ask, unless a request is running."""

    def take(self) -> Outcome | None:
        """The outcome of the request, once."""


class Screen:
    """One live view on a terminal."""

    def __init__(
        self, view: View, terminal: Terminal, poller: Asking, every_s: float,
        now_s: Callable[[], float],
    ) -> None:  # fmt: skip
        """``view`` has its first answer already; ``every_s`` is from an answer to the next
        request."""
        self._view = view
        self._terminal = terminal
        self._poller = poller
        self._every_s = every_s
        self._now_s = now_s
        self._answered_s = now_s()
        self._next_s = self._answered_s + every_s
        self._asked = view.path
        self._problem = ""
        self._drawn: tuple[object, ...] = ()

    def run(self) -> None:
        """Draw until the view is done."""
        is_new = True
        while not self._view.is_done:
            is_new |= self._take()
            self._ask()
            self._draw(is_new)
            keys = self._terminal.keys(KEY_WAIT_S)
            for key in keys:
                self._view.on_key(key)
            is_new = bool(keys)

    def _take(self) -> bool:
        """Whether an outcome arrived."""
        outcome = self._poller.take()
        if outcome is None:
            return False
        now_s = self._now_s()
        self._next_s = now_s + self._every_s
        if outcome.path != self._view.path:
            # The view has moved on meanwhile.
            self._next_s = now_s
            return False
        self._problem = outcome.problem
        if outcome.answer is not None:
            try:
                self._view.on_answer(outcome.answer)
            except click.ClickException as error:
                self._problem = error.format_message()
            else:
                self._answered_s = now_s
        return True

    def _ask(self) -> None:
        has_moved = self._view.path != self._asked
        is_due = self._now_s() >= self._next_s and not self._view.is_paused
        if (has_moved or is_due) and self._poller.begin(self._view.path):
            self._asked = self._view.path
            self._next_s = float("inf")

    def _draw(self, is_new: bool) -> None:
        age_s = int(self._now_s() - self._answered_s)
        size = self._terminal.size()
        if is_new or self._drawn != (age_s, size):
            self._drawn = (age_s, size)
            freshness = Freshness(age_s, self._problem, self._every_s)
            self._terminal.draw(self._view.lines(*size, freshness))
