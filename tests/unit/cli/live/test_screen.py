"""The loop over a fake terminal and a fake broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.text import Text

from headgate.cli.live.screen import Freshness, Screen
from tests.unit.cli.live.fakes import FakePoller, FakeTerminal


class Numbers:
    """Shows the number of the last answer."""

    def __init__(self) -> None:
        self.path = "/a"
        self.is_paused = False
        self.is_done = False
        self.number = 0

    def on_answer(self, answer: Any) -> None:
        if "number" not in answer:
            raise click.ClickException("an older release")
        self.number = answer["number"]

    def on_key(self, key: str) -> None:
        match key:
            case "q":
                self.is_done = True
            case "p":
                self.is_paused = not self.is_paused
            case _:
                self.path = key

    def lines(self, width: int, height: int, freshness: Freshness) -> Sequence[Text]:
        assert (width, height) == (40, 6)
        assert freshness.every_s == 2
        return [Text(f"{self.number} {freshness.age_s} {freshness.problem}".strip())]


def play(
    keys: Iterable[Sequence[str]], outcomes: Iterable[Any], late: int = 0
) -> tuple[list[str], FakePoller]:
    terminal = FakeTerminal([*keys, ["q"]])
    poller = FakePoller(outcomes, late)
    Screen(Numbers(), terminal, poller, 2, lambda: terminal.now_s).run()
    return [lines[0] for lines in terminal.drawn], poller


NONE: list[str] = []


def test_it_asks_again_after_each_answer() -> None:
    drawn, poller = play([NONE] * 6, [{"number": 1}, {"number": 2}])
    # The request at the second second is answered at the third, the next one is two later.
    assert drawn == ["0 0", "0 1", "0 2", "1 0", "1 1", "1 2", "2 0"]
    assert poller.asked == ["/a"] * 2


def test_a_slow_answer_is_waited_for() -> None:
    drawn, poller = play([NONE] * 6, [{"number": 1}], late=3)
    assert drawn == ["0 0", "0 1", "0 2", "0 3", "0 4", "0 5", "1 0"]
    assert poller.asked == ["/a"]


def test_a_broker_that_goes_away_and_comes_back() -> None:
    drawn, poller = play([NONE] * 9, ["it refuses", {"number": 1}, {"number": 2}])
    assert poller.asked == ["/a"] * 3
    old = [f"0 {age} it refuses" for age in (3, 4, 5)]
    assert drawn == ["0 0", "0 1", "0 2", *old, "1 0", "1 1", "1 2", "2 0"]


def test_an_answer_that_cannot_be_shown_keeps_the_one_before() -> None:
    drawn, _ = play([NONE] * 3, [{}])
    assert drawn[-1] == "0 3 an older release"


def test_while_paused_nothing_is_asked() -> None:
    drawn, poller = play([["p"], *[NONE] * 5, ["p"], NONE, NONE], [{"number": 1}])
    assert poller.asked == ["/a"]
    assert drawn[6] == "0 6"


def test_another_path_is_asked_at_once_and_the_answer_to_the_old_one_dropped() -> None:
    drawn, poller = play(
        [NONE, NONE, ["/b"], NONE, NONE, NONE], [{"number": 1}, {"number": 2}], late=1
    )
    assert poller.asked == ["/a", "/b"]
    assert not any(line.startswith("1") for line in drawn)
    assert drawn[-1].startswith("2 ")


def test_it_draws_when_something_changed() -> None:
    terminal = FakeTerminal([NONE, NONE, ["x"], ["q"]])
    terminal.keys = lambda wait_s, keys=terminal.keys: (keys(wait_s), setattr(  # type: ignore[method-assign]
        terminal, "now_s", 100.0))[0]  # fmt: skip
    Screen(Numbers(), terminal, FakePoller([{}] * 5), 2, lambda: terminal.now_s).run()
    assert len(terminal.drawn) == 2
