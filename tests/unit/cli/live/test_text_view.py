"""A text that is longer than the screen."""

from __future__ import annotations

from typing import Any

import click
import pytest

from headgate.cli.live.screen import Freshness
from headgate.cli.live.text_view import TextView

FRESH = Freshness(0, "", 2.0)


def text_of(answer: Any, width: int) -> str:
    if "count" not in answer:
        raise click.ClickException("an older release")
    return "".join(f"\x1b[1m{number}\x1b[0m of {width}\n" for number in range(answer["count"]))


def shown(view: TextView, height: int = 4) -> list[str]:
    lines = view.lines(30, height, FRESH)
    assert len(lines) == height
    return [line.plain for line in lines[:-1]]


def test_it_scrolls_within_the_text() -> None:
    view = TextView("/a", {"count": 10}, text_of)
    assert shown(view) == ["0 of 30", "1 of 30", "2 of 30"]
    for key, first in {
        "up": 0, "down": 1, "j": 2, "k": 1, "page down": 3, " ": 5, "page up": 3, "home": 0,
    }.items():  # fmt: skip
        view.on_key(key)
        assert shown(view)[0] == f"{first} of 30", key
    for _ in range(9):
        view.on_key("page down")
    assert shown(view) == ["7 of 30", "8 of 30", "9 of 30"]


def test_a_shorter_answer_moves_it_back() -> None:
    view = TextView("/a", {"count": 10}, text_of)
    view.on_key("page down")
    shown(view)
    view.on_answer({"count": 2})
    assert shown(view) == ["0 of 30", "1 of 30", ""]


def test_what_cannot_be_shown_is_not_taken() -> None:
    view = TextView("/a", {"count": 1}, text_of)
    with pytest.raises(click.ClickException):
        view.on_answer({})
    assert shown(view)[0] == "0 of 30"


def test_its_keys() -> None:
    view = TextView("/a", {"count": 9}, text_of)
    assert view.lines(80, 4, FRESH)[-1].plain.startswith(
        "q quit   ↑↓ scroll   p pause   6 lines below"
    )
    view.on_key("p")
    assert view.is_paused
    assert "paused" in view.lines(80, 4, FRESH)[-1].plain
    view.on_key("q")
    assert view.is_done


def test_old_figures_are_grey() -> None:
    view = TextView("/a", {"count": 1}, text_of)
    lines = view.lines(60, 3, Freshness(9, "b refuses", 2.0))
    assert any("dim" in str(span.style) for span in lines[0].spans)
    assert lines[-1].plain.startswith("No answer for 9 s: b refuses")
