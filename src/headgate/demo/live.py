"""The live view of the demo: a table on a terminal, plain lines in a pipe or a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.demo.findings import Finding

PLAIN_EVERY_S: Final = 10.0
"""Time between two sets of plain lines."""
TIMELINE_LINES: Final = 3
"""Most lines of a timeline, the newest ones. With all subscriptions they fit on a terminal of 24
lines."""

_COLUMNS: Final = ("  topic / subscription", "backlog", "state now", "verdict, confidence")
_SUBJECT_WIDTH: Final = 22
_BACKLOG_WIDTH: Final = 7
_STATE_WIDTH_MAX: Final = 30
_VERDICT_WIDTH: Final = 28
_GAP: Final = 2

_COLOURS: Final = {"NONE": "green", "CONSUMER": "yellow", "NO_CONSUMER": "yellow"}


def verdict_text(finding: Finding) -> str:
    """``CONSUMER, high``: the verdict and how sure explain is; ``settling`` at the beginning."""
    level = finding.confidence_level
    return level if level == "settling" else f"{finding.verdict}, {level}"


def plain_line(finding: Finding) -> str:
    """The line of one subscription where nothing can be overwritten."""
    return (
        f"  {finding.subject.text:<20} backlog {finding.backlog:>6,}  {finding.state:<32} "
        f"{verdict_text(finding)}"
    )


def colour(verdict: str) -> str:
    """A verdict's colour."""
    return _COLOURS.get(verdict, "red")


def table(findings: Sequence[Finding], width: int) -> Table:
    """All lines as one table, ``width`` columns at most.

    Columns keep their widths while states come and go; where room is scarce, states are cut.
    """
    others = _SUBJECT_WIDTH + _BACKLOG_WIDTH + _VERDICT_WIDTH + 3 * _GAP
    widths = (
        _SUBJECT_WIDTH,
        _BACKLOG_WIDTH,
        max(10, min(_STATE_WIDTH_MAX, width - others)),
        _VERDICT_WIDTH,
    )
    grid = Table(box=None, padding=(0, _GAP, 0, 0), header_style="dim", pad_edge=False)
    for name, column_width in zip(_COLUMNS, widths, strict=True):
        justify: Literal["left", "right"] = "right" if name == "backlog" else "left"
        grid.add_column(name, justify=justify, width=column_width, no_wrap=True)
    for finding in findings:
        style = "dim" if finding.confidence_level == "settling" else colour(finding.verdict)
        grid.add_row(
            f"  {finding.subject.text}",
            f"{finding.backlog:,}",
            Text(finding.state),
            Text(verdict_text(finding), style=style),
        )
    return grid


@dataclass(frozen=True, slots=True)
class Timeline:
    """The course of a limit up to now."""

    heading: str
    """The heading of its lines."""
    lines: Sequence[Text]
    """One for each span of time."""


def _timeline_lines(heading: str, new: Sequence[Text]) -> list[Text]:
    """``new`` lines under what they are about; nothing where there are none."""
    if not new:
        return []
    lines = [Text(f"  {heading}", "dim"), *(text.copy() for text in new)]
    for text in lines:
        text.no_wrap, text.overflow = True, "ellipsis"
    return lines


class LiveView:
    """A context in which findings are shown as they arrive."""

    def __init__(self, console: Console, seconds: float) -> None:
        """The situations develop for ``seconds``."""
        self._console = console
        self._seconds = seconds
        self._live: Live | None = None
        self._next_plain_s = 0.0
        self._shown: dict[str, int] = {}
        """Printed lines of each timeline, by its heading."""

    def __enter__(self) -> LiveView:
        """Begin to draw."""
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=4, transient=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the last state on the screen."""
        if self._live is not None:
            self._live.stop()

    def show(
        self,
        elapsed_s: float,
        findings: Sequence[Finding],
        note: str,
        timelines: Sequence[Timeline] = (),
    ) -> None:
        """Draw the present state; ``note`` is one more line, such as Spark's progress."""
        clock = f"  {min(elapsed_s, self._seconds):3.0f} of {self._seconds:.0f} s"
        if self._live is not None:
            parts: list[RenderableType] = [
                table(findings, self._console.width),
                *(
                    text
                    for each in timelines
                    for text in _timeline_lines(each.heading, each.lines[-TIMELINE_LINES:])
                ),
                Text(f"{clock}   {note}", "dim", no_wrap=True, overflow="ellipsis"),
            ]
            self._live.update(Group(*parts))
        elif elapsed_s >= self._next_plain_s or elapsed_s >= self._seconds:
            self._next_plain_s = elapsed_s - elapsed_s % PLAIN_EVERY_S + PLAIN_EVERY_S
            lines = [f"{clock}   {note}".rstrip(), *map(plain_line, findings)]
            for each in timelines:
                new = each.lines[self._shown.get(each.heading, 0) :]
                self._shown[each.heading] = len(each.lines)
                lines += [text.plain for text in _timeline_lines(each.heading, new)]
            self._console.print("\n".join(lines), markup=False, soft_wrap=True)
