"""The last line."""

from __future__ import annotations

from headgate.cli.live.screen import Freshness
from headgate.cli.live.status import status_line


def line(width: int, problem: str = "", *, is_paused: bool = False) -> str:
    found = status_line("q quit", Freshness(75, problem, 0.5), width, is_paused=is_paused)
    assert found.cell_len <= width
    return found.plain


def test_keys_and_pace() -> None:
    assert line(24) == "q quit       every 0.5 s"
    assert line(30, is_paused=True) == "q quit        paused, 75 s old"
    assert line(12) == "q quit"
    assert line(4) == "q q…"


def test_a_failure_says_how_old_the_figures_are() -> None:
    assert line(80, "b refuses") == ("No answer for 75 s: b refuses; these figures are from before")
    assert line(40, "b refuses") == "No answer for 75 s: b refuses"
    assert "\x1b" not in line(40, "b \x1b[2J")
