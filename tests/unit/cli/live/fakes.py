"""What stands in for a terminal and a broker in tests of live views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from headgate.cli.live.poller import Answer, Outcome


class FakeTerminal:
    """A screen of a fixed size; each look for keys gives the next of ``pressed`` and takes a
    second."""

    def __init__(self, pressed: Iterable[Sequence[str]]) -> None:
        self.shown = (40, 6)
        self.drawn: list[list[str]] = []
        self.now_s = 100.0
        self._pressed = iter(pressed)

    def size(self) -> tuple[int, int]:
        return self.shown

    def keys(self, wait_s: float) -> Sequence[str]:
        assert 0 < wait_s <= 1
        self.now_s += 1
        return next(self._pressed)

    def draw(self, lines: Sequence[Text]) -> None:
        assert len(lines) <= self.shown[1]
        self.drawn.append([line.plain for line in lines])


class FakePoller:
    """Each request has the next of ``outcomes``, at once or after ``late`` looks."""

    def __init__(self, outcomes: Iterable[Answer | str], late: int = 0) -> None:
        """A text is why a request failed."""
        self.asked: list[str] = []
        self._outcomes = iter(outcomes)
        self._late = late
        self._running: tuple[str, int] | None = None

    def begin(self, path: str) -> bool:
        if self._running is not None:
            return False
        self.asked.append(path)
        self._running = (path, self._late)
        return True

    def take(self) -> Outcome | None:
        if self._running is None:
            return None
        path, left = self._running
        if left:
            self._running = (path, left - 1)
            return None
        self._running = None
        outcome = next(self._outcomes)
        if isinstance(outcome, str):
            return Outcome(path, None, outcome)
        return Outcome(path, outcome)
