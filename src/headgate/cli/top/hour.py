"""The last hour of a subscription in a few characters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.text import Text

from headgate.cli.explain.causes import cause_color, cause_letter

_BARS: Final = "▁▂▃▄▅▆▇█"
_HARMLESS: Final = ("NONE", "SETTLING")


def hour_text(timeline: Mapping[str, Any] | None, width: int, *, is_drawn: bool) -> Text:
    """The hour in ``width`` characters, the newest minute at the right.

    With ``is_drawn`` each is a bar as high as the backlog in the colour of its cause, otherwise the
    letter of its cause. A minute of which nothing is known is blank.
    """
    if timeline is None:
        return Text(" " * width)
    verdicts, backlog = timeline["verdicts"], timeline["backlog"]
    highest = max((amount for amount in backlog if amount), default=0)
    text = Text()
    for begin, end in _spans(len(verdicts), width):
        known = [verdict for verdict in verdicts[begin:end] if verdict is not None]
        if not known:
            text.append(" ")
            continue
        verdict = _worst(known)
        if not is_drawn:
            text.append(cause_letter(verdict), cause_color(verdict))
            continue
        amount = max((amount for amount in backlog[begin:end] if amount), default=0)
        bar = _BARS[min(amount * len(_BARS) // highest, len(_BARS) - 1) if highest else 0]
        text.append(bar, cause_color(verdict))
    return text


def _spans(count: int, width: int) -> list[tuple[int, int]]:
    """``width`` parts of ``count`` steps, each with at least one step."""
    return [(part * count // width, max((part + 1) * count // width, part * count // width + 1))
            for part in range(width)]  # fmt: skip


def _worst(verdicts: list[str]) -> str:
    """The verdict of most of the minutes in which somebody is to blame, else of the last one."""
    blamed = [verdict for verdict in verdicts if verdict not in _HARMLESS]
    return max(blamed, key=blamed.count) if blamed else verdicts[-1]
