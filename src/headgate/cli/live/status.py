"""The last line of a live view: its keys, or why it shows old figures."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from headgate.base.texts import printable, time_text
from headgate.cli.live.screen import Freshness

_OLD: Final = "; these figures are from before"


def status_line(keys: str, freshness: Freshness, width: int, *, is_paused: bool) -> Text:
    """The keys and how often the view asks; after a failed request what failed, and how old the
    figures are."""
    age = time_text(freshness.age_s)
    if freshness.problem:
        line = Text(printable(f"No answer for {age}: {freshness.problem}"), "bold red")
        if line.cell_len + len(_OLD) <= width:
            line.append(_OLD)
    else:
        pace = f"paused, {age} old" if is_paused else f"every {freshness.every_s:g} s"
        line = Text(keys, "dim")
        room = width - line.cell_len - len(pace)
        if room >= 1:
            line.append(" " * room + pace, "bold" if is_paused else "dim")
    line.truncate(width, overflow="ellipsis")
    return line
