"""The live view, on a terminal and in a file."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from headgate.demo import adaptive, adaptive_view, follow, follow_view
from headgate.demo.live import TIMELINE_LINES, LiveView, Timeline, table, verdict_text
from tests.unit.demo.made import PAIR, adaptive_snapshots, all_findings, finding, snapshots

_FOUND = [
    finding("orders / billing", 1_234),
    finding("payments / audit", 7, state="throttled_subscription, hungry"),
    finding("logins / alerts", 2, confidence_level="settling"),
]


def _relative(seconds: float) -> Timeline:
    """What is known of a limit that moves after so many of 60 seconds."""
    seen = snapshots(60)
    known = follow.rows(
        [snapshot for snapshot in seen if snapshot.at_s - seen[0].at_s <= seconds], 60
    )
    return Timeline("a limit that moves", [follow_view.line(row) for row in known])


def _slowed() -> Timeline:
    """What is known of a producer that is slowed after 60 seconds."""
    known = adaptive.rows(adaptive_snapshots(60), 60)
    return Timeline(adaptive_view.heading(PAIR), [adaptive_view.line(row, PAIR) for row in known])


def _recorded(width: int, *, terminal: bool) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, record=True)


def test_a_verdict_settles() -> None:
    assert verdict_text(finding("orders / billing")) == "CONSUMER, high"
    assert verdict_text(finding("orders / billing", confidence_level="settling")) == "settling"


def test_a_file_gets_regular_lines_for_each_subscription() -> None:
    console = _recorded(100, terminal=False)
    with LiveView(console, 25) as view:
        for second in range(26):
            view.show(second + 0.1, _FOUND, "Spark starts" if second < 15 else "")
    text = console.export_text()
    assert text.splitlines()[:4] == [
        "    0 of 25 s   Spark starts",
        "  orders / billing     backlog  1,234  no_permits                       CONSUMER, high",
        "  payments / audit     backlog      7  throttled_subscription, hungry   "
        "THROTTLED_SUBSCRIPTION, high",
        "  logins / alerts      backlog      2  no_permits                       settling",
    ]
    heads = [line for line in text.splitlines() if "of 25 s" in line]
    assert heads == [
        "    0 of 25 s   Spark starts",
        "   10 of 25 s   Spark starts",
        "   20 of 25 s",
        "   25 of 25 s",
    ]


def test_a_file_gets_every_followed_row_once() -> None:
    console = _recorded(100, terminal=False)
    with LiveView(console, 60) as view:
        for second in range(61):
            view.show(second, _FOUND, "", [_relative(second), _slowed()])
    lines = console.export_text().splitlines()
    for mark in ("-> delivered", "quota"):
        times = [line.split()[0] for line in lines if mark in line and " s  " in line]
        assert times == [f"{begin}-{begin + 5}" for begin in range(0, 60, 5)]
    assert lines.count("  a limit that moves") == 6
    assert sum("on the same connection" in line for line in lines) == 1


def test_the_display_fits_a_terminal_of_24_lines() -> None:
    """One of them is the cursor's."""
    console = _recorded(80, terminal=True)
    with LiveView(console, 60) as view:
        found = list(all_findings().values())
        view.show(60.0, found, "note " * 40, [_relative(60), _slowed()])
    text = console.export_text()
    assert text.count("-> delivered") == text.count("-> videos") == TIMELINE_LINES
    assert "55-60 s  published 100/s -> limit 150/s" in text
    assert "55-60 s  quota 70 % -> limit 101/s" in text
    assert len(text.rstrip().splitlines()) <= 23
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text.partition("note")[0].replace("throttled_subsc…", "")


def test_a_terminal_gets_one_table_that_is_redrawn() -> None:
    console = _recorded(100, terminal=True)
    with LiveView(console, 60) as view:
        view.show(0.0, _FOUND, "Spark starts")
        view.show(61.0, [finding("orders / billing", 5)], "batch 1")
    text = console.export_text()
    assert text.count("orders / billing") >= 1
    assert "60 of 60 s   batch 1" in text
    assert "\x1b[" in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("width", "state"),
    [
        (160, "throttled_subscription, hungry"),
        (100, "throttled_subscription, hungry"),
        (80, "throttled_subsc"),
    ],
)
def test_important_columns_fit_any_terminal(width: int, state: str) -> None:
    console = _recorded(width, terminal=False)
    console.print(table(_FOUND, width))
    lines = console.export_text().splitlines()
    assert len(lines) == 1 + len(_FOUND)
    assert all(len(line) <= width for line in lines)
    assert state in lines[2]
    assert "THROTTLED_SUBSCRIPTION, high" in lines[2]
    assert "1,234" in lines[1]
