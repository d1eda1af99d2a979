"""Lines of a page fit its width, and colours only repeat its words."""

from __future__ import annotations

from headgate.cli.explain.page import Page


def test_a_paragraph_is_wrapped_under_its_prefix() -> None:
    page = Page(20, color=False)
    page.add("one two three four five", first="- ", rest="  ")
    page.blank()
    assert page.text() == "- one two three four\n  five\n\n"


def test_the_last_column_is_wrapped() -> None:
    page = Page(40, color=False)
    page.rows([("now", "busy and busy and busy and busy"), ("last minute", "idle")])
    assert page.text() == (
        "    now          busy and busy and busy\n"
        "                 and busy\n"
        "    last minute  idle\n"
    )  # fmt: skip


def test_wide_columns_stand_above_the_last_one() -> None:
    page = Page(40, color=False)
    page.rows([("a long name of a subscription", "50 msg/s", "topic policy")])
    assert page.text() == "    a long name of a subscription  50\n    msg/s\n        topic policy\n"


def test_a_colour_is_for_the_first_word_and_bold_for_the_line() -> None:
    page = Page(40, color=True)
    page.add("NONE: it keeps up", first="  ", fg="green")
    page.add("Limits in force", bold=True)
    assert page.text() == "  \x1b[32mNONE:\x1b[0m it keeps up\n\x1b[1mLimits in force\x1b[0m\n"
