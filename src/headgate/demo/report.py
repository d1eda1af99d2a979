"""The demo's table: per subscription the judgement, what was built, and what PIP-406 alone says."""

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

WIDTH: Final = 100
_INDENT: Final = "    "


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One subscription: what was built, what was found and what the rule says."""

    scene: Scene
    finding: Finding
    rule: str

    @property
    def is_right(self) -> bool:
        """Whether the verdict is what the situation was built to be."""
        return self.finding.verdict == self.scene.verdict.value

    @property
    def rule_is_right(self) -> bool:
        """Whether PIP-406's rule alone would have told as much."""
        return rule_is_right(self.rule, self.scene.verdict.value)


def rows(
    meant: Sequence[tuple[Subject, Scene]],
    findings: Mapping[Subject, Finding],
    rule: Mapping[Subject, str],
) -> list[ReportRow]:
    """One row for each subscription that was found, in the order of the scenes."""
    return [
        ReportRow(scene, findings[subject], rule[subject])
        for subject, scene in meant
        if subject in findings
    ]


def wrong(
    meant: Sequence[tuple[Subject, Scene]], findings: Mapping[Subject, Finding], by: str
) -> list[str]:
    """A line for each subscription whose verdict is missing or not what it was built to be."""
    lines = []
    for subject, scene in meant:
        finding = findings.get(subject)
        said = "nothing" if finding is None else finding.verdict
        if said != scene.verdict.value:
            meant_to_be = scene.verdict.value
            lines.append(f"{subject.text}: {by} says {said}, it was built to be {meant_to_be}")
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


def print_report(console: Console, report: Sequence[ReportRow]) -> None:
    """Print the table, 100 columns wide."""
    console.print(Text(head_line(), "dim"))
    for row in report:
        _print_row(console, row)
    helped = [row for row in report if not row.rule_is_right]
    console.print(
        f"\nPIP-406's rule alone is right for {len(report) - len(helped)} of {len(report)}; it"
        " cannot tell a limiter that holds the backlog\nfrom one that is merely busy, nor a slow consumer"
        " from none at all. The rule for Prometheus:",
        style="bold",
    )


def _print_row(console: Console, row: ReportRow) -> None:
    finding = row.finding
    line = Text(first_line(finding), "bold")
    line.highlight_words([f" {finding.verdict} "], colour(finding.verdict))
    console.print(line)
    mark = "as built" if row.is_right else f"built to be {row.scene.verdict.value}: WRONG"
    _field(console, "built", f"{row.scene.built} ({mark})", "green" if row.is_right else "red")
    _field(console, "blame", finding.shares_text(), "")
    said = f"{row.rule}" + ("" if row.rule_is_right else "   <- not so")
    _field(console, "PIP-406", said, "" if row.rule_is_right else "yellow")
    _field(console, "says", finding.sentence, "")
    console.print()


def _field(console: Console, name: str, text: str, style: str) -> None:
    head = f"{_INDENT}{name:<9}"
    lines = textwrap.wrap(text, WIDTH - len(head)) or [""]
    for index, line in enumerate(lines):
        start = head if index == 0 else " " * len(head)
        console.print(Text.assemble((start, "dim"), (line, style)))
