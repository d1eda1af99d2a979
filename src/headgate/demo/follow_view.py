"""Shows how a limit follows the publish rate, a line for every few seconds."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from headgate.demo.follow import Row, Snapshot
from headgate.demo.scenes import Scene, Subject

_INDENT: Final = "  "
_WIDTH_MAX: Final = 100
_PUBLISHED, _ABOVE = "=", "+"
"""The characters of a bar: the publish rate, and what the limit allows above it."""

_HEAD: Final = " ".join(
    f"{name:>{width}}"
    for name, width in (
        ("SECONDS", 9), ("PUBLISHED", 10), ("LIMIT", 7), ("DELIVERED", 10), ("BACKLOG", 9),
        ("CHANGE", 7),
    )
)  # fmt: skip
_GAP: Final = 3


def heading(subject: Subject, scene: Scene) -> str:
    """``parcels / tracking: limit = publish rate + 50/s``."""
    return f"{subject.text}: limit = publish rate + {scene.limit_per_s}/s"


def sentence(row: Row) -> str:
    """``published 100/s -> limit 150/s -> delivered 150/s -> backlog -50/s``."""
    return (
        f"published {row.published_per_s:3.0f}/s -> limit {row.limit_per_s:3.0f}/s -> "
        f"delivered {row.delivered_per_s:3.0f}/s -> backlog {row.growth_per_s:+.0f}/s"
    )


def line(row: Row) -> Text:
    """One row while the situations develop."""
    text = Text(f"{_INDENT}{row.span.text:>9}  {sentence(row)}")
    text.highlight_regex(r"limit +\d+/s", "yellow")
    return text


def table(found: Sequence[Row], width: int) -> list[Text]:
    """The rows with a bar each: the publish rate and, beyond it, the limit in force. No line is
    wider than ``width``; where there is no room for bars there are none."""
    room = width - len(_INDENT) - len(_HEAD) - _GAP
    most = max((max(row.limit_per_s, row.published_per_s) for row in found), default=0.0)
    lines = [Text(f"{_INDENT}{_HEAD}", "dim")]
    for row in found:
        text = Text(f"{_INDENT}{row.span.text:>9} {row.published_per_s:>8.0f}/s")
        text.append(f" {row.limit_per_s:>5.0f}/s", "yellow")
        text.append(f" {row.delivered_per_s:>8.0f}/s {row.backlog:>9,} {row.growth_per_s:>+5.0f}/s")
        if room > 0 and most > 0:
            published = round(room * row.published_per_s / most)
            above = max(0, round(room * row.limit_per_s / most) - published)
            text.append(" " * _GAP)
            text.append(_PUBLISHED * published, "cyan")
            text.append(_ABOVE * above, "yellow")
        lines.append(text)
    return lines


def print_timeline(
    console: Console,
    subject: Subject,
    scene: Scene,
    snapshots: Sequence[Snapshot],
    found: Sequence[Row],
) -> None:
    """Print the table of at least one look, and what it shows."""
    width = min(_WIDTH_MAX, console.width)

    def say(text: str) -> None:
        lines = textwrap.wrap(
            text,
            width,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        console.print("\n".join(lines), markup=False, soft_wrap=True)

    say(
        f"{subject.text} has an old backlog and a limit of {scene.limit_per_s}/s above what is"
        f" published ({snapshots[-1].source}, relativeToPublishRate). Means of some seconds; bars:"
        f" {_PUBLISHED} published, {_ABOVE} what the limit in force allows beyond that."
    )
    for text in table(found, width):
        console.print(text, soft_wrap=True)
    passed_s = max(1.0, snapshots[-1].at_s - snapshots[0].at_s)
    change = (snapshots[-1].backlog - snapshots[0].backlog) / passed_s
    say(
        f"Whatever was published, on average the backlog changed by {change:+.0f}/s. A rise is"
        " followed within 2 s; after a fall the limit comes down by no more than half in 2 s, so"
        " that a producer's pause starves no consumer. While it comes down, deliveries of the"
        " last second count in proportion."
    )
