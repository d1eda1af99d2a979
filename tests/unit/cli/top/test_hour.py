"""The last hour in a few characters."""

from __future__ import annotations

import pytest

from headgate.cli.top.hour import hour_text
from tests.unit.cli.top.reports import timeline

STORY = timeline(
    *[("NONE", 0)] * 10, *[("CONSUMER", 40)] * 10, *[("NONE", 5), ("THROTTLED_TOPIC", 80)] * 5
)


def letters(width: int) -> str:
    return hour_text(STORY, width, is_drawn=False).plain


def test_a_letter_for_each_minute() -> None:
    assert letters(60) == " " * 30 + "." * 10 + "c" * 10 + ".T" * 5


def test_a_part_of_several_minutes_has_the_cause_that_was_to_blame() -> None:
    assert letters(6) == "   .cT"
    assert letters(30) == " " * 15 + "." * 5 + "c" * 5 + "T" * 5


@pytest.mark.parametrize("width", [1, 7, 15, 59, 60])
def test_it_has_the_width(width: int) -> None:
    assert len(letters(width)) == width
    assert hour_text(None, width, is_drawn=True).plain == " " * width


def test_bars_are_as_high_as_the_backlog_in_the_colour_of_the_cause() -> None:
    text = hour_text(STORY, 6, is_drawn=True)
    assert text.plain == "   ▁▅█"
    assert [str(span.style) for span in text.spans] == ["green", "yellow", "red"]


def test_nothing_waited() -> None:
    assert hour_text(timeline(("NONE", 0)), 60, is_drawn=True).plain[-1] == "▁"
