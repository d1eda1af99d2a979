"""The text of the demo's table."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from headgate.demo.findings import Finding
from headgate.demo.report import (
    ReportRow,
    blame_text,
    first_line,
    head_line,
    print_report,
    wrong_verdicts,
)
from headgate.demo.report import rows as report_rows
from headgate.demo.scenes import Subject
from tests.unit.demo.made import SUBJECTS, all_findings, finding, scene, subject

_MEANT = list(SUBJECTS.items())
_RULE = dict.fromkeys(SUBJECTS, "the consumer") | {
    subject("logins / alerts"): "no backlog",
    subject("clicks / search"): "the topic limit",
}


def _printed(findings: dict[Subject, Finding], width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, record=True)
    print_report(console, report_rows(_MEANT, findings, _RULE))
    return console.export_text()


def test_rows_have_the_order_of_the_scenes() -> None:
    rows = report_rows(_MEANT, all_findings(), _RULE)
    assert [row.finding.subject for row in rows] == list(SUBJECTS)
    assert all(row.is_right for row in rows)


def test_the_rules_answer_is_compared_with_the_cause() -> None:
    rows = report_rows(_MEANT, all_findings(), _RULE)
    right = [row.finding.subject.text for row in rows if row.rule_is_right]
    assert right == [
        "orders / billing",
        "clicks / search",
        "metering / invoices",
        "logins / alerts",
        "videos / encoding",
    ]


def test_a_verdict_that_differs_from_the_cause_is_named() -> None:
    found = all_findings()
    assert wrong_verdicts(_MEANT, found, "explain") == []
    del found[subject("orders / billing")]
    found[subject("clicks / search")] = finding("clicks / search", verdict="CONSUMER")
    assert wrong_verdicts(_MEANT, found, "explain") == [
        "orders / billing: explain finds no verdict, the situation was built as CONSUMER",
        "clicks / search: explain finds CONSUMER, the situation was built as THROTTLED_TOPIC",
    ]


def test_figures_are_aligned_with_their_headers() -> None:
    line = first_line(finding("orders / billing", 12_345))
    head = head_line()
    assert line == "orders / billing         12,345  +12,344   CONSUMER                0.97"
    assert head.index("VERDICT") == line.index("CONSUMER")
    assert head.index("CONFIDENCE") == line.index("0.97")
    assert head.index("BACKLOG") + len("BACKLOG") == line.index("12,345") + len("12,345")


def test_a_subscription_is_shown_completely() -> None:
    row = finding("clicks / search", 3_600, sentence="THROTTLED_TOPIC: the limit held it.")
    assert _printed({row.subject: row}).splitlines()[:6] == [
        head_line(),
        "clicks / search           3,600   +3,599   THROTTLED_TOPIC         0.97",
        "    the limit held it.",
        "    blame    THROTTLED_TOPIC 97 %, BROKER 3 %",
        "    built    a topic limit of 80/s that two subscriptions share, 100/s published",
        "    PIP-406  the topic limit",
    ]


def test_wrong_rows_are_marked() -> None:
    row = finding("payments / audit", verdict="CONSUMER")
    text = _printed({row.subject: row})
    assert "    WRONG    built as THROTTLED_SUBSCRIPTION\n" in text
    assert "    PIP-406  the consumer: wrong\n" in text
    assert "is right for 0 of 1." in " ".join(text.split())


def test_the_rules_right_answers_are_counted() -> None:
    assert "is right for 5 of 13." in " ".join(_printed(all_findings()).split())


@pytest.mark.parametrize("width", [80, 100, 160])
def test_lines_fit_the_terminal_and_stay_readable(width: int) -> None:
    long = "a sentence of many words that goes on and on " * 8
    found = {each: replace(one, sentence=long) for each, one in all_findings().items()}
    lines = _printed(found, width).splitlines()
    assert max(map(len, lines)) <= min(width, 100)
    assert max(map(len, lines)) > min(width, 100) - 20


def test_shares_of_a_healthy_subscription_refer_to_messages_in_flight() -> None:
    healthy = finding("logins / alerts", shares={"CONSUMER": 0.9, "NONE": 0.1})
    assert blame_text(healthy) == "nobody; messages were in flight for 90 % of it"
    assert blame_text(finding("orders / billing")) == "CONSUMER 97 %, BROKER 3 %"


def test_a_row_states_whether_it_is_right() -> None:
    row = ReportRow(scene("healthy"), finding("logins / alerts", verdict="CONSUMER"), "no backlog")
    assert not row.is_right
    assert row.rule_is_right
