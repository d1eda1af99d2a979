"""Shows how a producer is slowed as its backlog quota fills."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from headgate.base.texts import percent, size_text
from headgate.demo.adaptive import Neighbours, Row, Snapshot, is_settled
from headgate.demo.scenes import Subject

_INDENT: Final = "  "
_INDENT_FURTHER: Final = "    "
_WIDTH_MAX: Final = 100
_USED, _FREE = "=", "."
"""The characters of a bar: the used part of the quota, and the rest."""
_SLOWED: Final = "yellow"

_HEAD: Final = " ".join(
    f"{name:>{width}}"
    for name, width in (
        ("SECONDS", 9), ("PUBLISHED", 10), ("LIMIT", 7), ("WAIT", 6), ("NEIGHBOUR", 10),
        ("QUOTA", 6),
    )
)  # fmt: skip
_GAP: Final = 3


def name(subject: Subject) -> str:
    """A topic as it is typed."""
    return subject.topic.rpartition("/")[2]


def heading(pair: Neighbours) -> str:
    """The heading of the lines of :func:`line`."""
    slowed, other = name(pair.slowed[0]), name(pair.other[0])
    return f"{slowed}: its quota fills, its producer is slowed; {other}: on the same connection"


def line(row: Row, pair: Neighbours) -> Text:
    """One row while the situations develop."""
    slowed, other = name(pair.slowed[0]), name(pair.other[0])
    limit = f"{'no limit':<11}" if row.limit_per_s is None else f"limit {row.limit_per_s:3.0f}/s"
    wait = "" if row.limit_per_s is None else f" waits {row.wait_s:.1f} s"
    text = Text(
        f"{_INDENT}{row.span.text:>9}  quota {percent(row.use):>4} -> {limit} -> {slowed}"
        f" {row.published_per_s:3.0f}/s{wait}; {other} {row.other_per_s:.0f}/s"
    )
    text.highlight_regex(r"limit +\d+/s", _SLOWED)
    return text


def table(found: Sequence[Row], width: int) -> list[Text]:
    """The rows with a bar each: how much of the quota is used at the row's end. No line is wider
    than ``width``; where there is no room for bars there are none."""
    room = width - len(_INDENT) - len(_HEAD) - _GAP
    lines = [Text(f"{_INDENT}{_HEAD}", "dim")]
    for row in found:
        text = Text(f"{_INDENT}{row.span.text:>9} {row.published_per_s:>8.0f}/s")
        limit = "none" if row.limit_per_s is None else f"{row.limit_per_s:.0f}/s"
        text.append(f" {limit:>7}", _SLOWED)
        text.append(f" {row.wait_s:>4.1f} s {row.other_per_s:>8.0f}/s {percent(row.use):>6}")
        if room > 0:
            used = min(room, round(room * row.use))
            text.append(" " * _GAP)
            text.append(_USED * used, "cyan")
            text.append(_FREE * (room - used), "dim")
        lines.append(text)
    return lines


def explained_width(console: Console) -> int:
    """Characters in a line of explain's text, as :func:`print_slowed` shows it."""
    return min(_WIDTH_MAX, console.width) - len(_INDENT_FURTHER)


def print_slowed(
    console: Console, pair: Neighbours, found: Sequence[Row], quota_bytes: int, explained: str
) -> None:
    """Print the table and the last text of explain."""
    (subject, scene), (other, _) = pair.slowed, pair.other
    slowed = name(subject)
    _say(
        console,
        f"The producer of {slowed} would publish {scene.publish_per_s}/s, its consumer processes"
        f" {scene.consume_per_s}/s: a backlog quota ({size_text(quota_bytes)},"
        " producer_request_hold) would hold it soon. Adaptive publish throttling (law drain) slows"
        f" it before that, and not its neighbour on the same connection, the producer of"
        f" {name(other)}. WAIT: how long a message waits in the broker. Means of some seconds;"
        f" bars: {_USED} used of the quota.",
    )
    for text in table(found, min(_WIDTH_MAX, console.width)):
        console.print(text, soft_wrap=True)
    _say(console, f"headgate explain {slowed}:")
    for written in explained.splitlines():
        console.print(Text(f"{_INDENT_FURTHER}{written}", "cyan"), soft_wrap=True)


def print_kept(console: Console, pair: Neighbours, snapshots: Sequence[Snapshot]) -> None:
    """Print the result, of at least one look, when everything is as it was built."""
    (subject, scene), (other, _) = pair.slowed, pair.other
    most = percent(max(snapshot.use for snapshot in snapshots))
    passed_s = max(1.0, snapshots[-1].at_s - snapshots[0].at_s)
    kept = (snapshots[-1].other.published - snapshots[0].other.published) / passed_s
    end = (
        "at the end it may publish about as fast as its consumer"
        if is_settled(snapshots, scene)
        else "its limit still falls, towards the rate of its consumer"
    )
    _say(
        console,
        f"The quota was never reached (at most {most} of it), so it held no producer. Only the"
        f" producer of {name(subject)} was slowed, and {end}; {name(other)} kept {kept:.0f}/s.",
    )


def _say(console: Console, text: str) -> None:
    lines = textwrap.wrap(
        text,
        min(_WIDTH_MAX, console.width),
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    console.print("\n".join(lines), markup=False, soft_wrap=True)
