"""The table of the demo, with one block for each subscription."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.text import Text

from headgate.demo.findings import Finding
from headgate.demo.live import colour
from headgate.demo.rule import rule_is_right
from headgate.demo.scenes import Scene, Subject
from headgate.flow.account.verdict import Verdict, nobody_text

_WIDTH_MAX: Final = 100
"""Longer lines are hard to read."""
_INDENT: Final = "    "


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One subscription: its scene, its finding and the result of PIP-406's rule."""

    scene: Scene
    finding: Finding
    rule: str

    @property
    def is_right(self) -> bool:
        """Whether the verdict is the cause that the situation was built with."""
        return self.finding.verdict == self.scene.verdict.value

    @property
    def rule_is_right(self) -> bool:
        """Whether PIP-406's rule alone gives the same cause."""
        return rule_is_right(self.rule, self.scene.verdict.value)


def rows(
    expected: Sequence[tuple[Subject, Scene]],
    findings: Mapping[Subject, Finding],
    rule: Mapping[Subject, str],
) -> list[ReportRow]:
    """One row for each subscription that was found, in the order of the scenes."""
    return [
        ReportRow(scene, findings[subject], rule[subject])
        for subject, scene in expected
        if subject in findings
    ]


def wrong_verdicts(
    expected: Sequence[tuple[Subject, Scene]], findings: Mapping[Subject, Finding], by: str
) -> list[str]:
    """A line for each subscription whose verdict is missing or unexpected."""
    lines = []
    for subject, scene in expected:
        finding = findings.get(subject)
        found = "no verdict" if finding is None else finding.verdict
        if found != scene.verdict.value:
            built = scene.verdict.value
            lines.append(f"{subject.text}: {by} finds {found}, the situation was built as {built}")
    return lines


def head_line() -> str:
    """The names over the columns of :func:`first_line`."""
    return f"{'TOPIC / SUBSCRIPTION':<22}{'BACKLOG':>9}{'GROWTH':>9}   {'VERDICT':<24}CONFIDENCE"


def first_line(finding: Finding) -> str:
    """Figures and verdict of one subscription, under :func:`head_line`."""
    return (
        f"{finding.subject.text:<22}{finding.backlog:>9,}{finding.growth:>+9,}   "
        f"{finding.verdict:<24}{finding.confidence:.2f}"
    )


def blame_text(finding: Finding) -> str:
    """The verdicts that its time is blamed on."""
    if finding.verdict == Verdict.NONE.value:
        return nobody_text({verdict: finding.shares.get(verdict.value, 0.0) for verdict in Verdict})
    return finding.shares_text()


def rule_text(row: ReportRow) -> str:
    """The result of the rule, marked if it is wrong."""
    if row.rule_is_right:
        return row.rule
    return f"{row.rule}: wrong"


def print_report(console: Console, report: Sequence[ReportRow]) -> None:
    """Print the table, as wide as the console but not over 100 columns."""
    width = min(_WIDTH_MAX, console.width)
    console.print(Text(head_line(), "dim"), soft_wrap=True)
    for row in report:
        _print_row(console, row, width)
    right = sum(row.rule_is_right for row in report)
    text = (
        f"PIP-406's rule alone (backlog high and no throttled events: the consumer) is right for"
        f" {right} of {len(report)}. It cannot tell a limiter that holds a backlog from one that is"
        " merely busy, nor a slow consumer from none at all. The rule for Prometheus:"
    )
    console.print(textwrap.fill(text, width), style="bold")


def _print_row(console: Console, row: ReportRow, width: int) -> None:
    finding = row.finding
    line = Text(first_line(finding), "bold")
    line.highlight_words([f" {finding.verdict} "], colour(finding.verdict))
    console.print(line, soft_wrap=True)
    fields = [
        ("", finding.reason, ""),
        ("blame", blame_text(finding), ""),
        ("built", row.scene.built, ""),
        ("PIP-406", rule_text(row), "" if row.rule_is_right else "yellow"),
    ]
    if not row.is_right:
        fields.append(("WRONG", f"built as {row.scene.verdict.value}", "bold red"))
    for name, text, style in fields:
        _print_field(console, name, text, style, width)
    console.print()


def _print_field(console: Console, name: str, text: str, style: str, width: int) -> None:
    head = f"{_INDENT}{name:<9}" if name else _INDENT
    lines = textwrap.wrap(text, max(20, width - len(head))) or [""]
    for index, line in enumerate(lines):
        start = head if index == 0 else " " * len(head)
        console.print(Text.assemble((start, "dim"), (line, style)), soft_wrap=True)
