"""What is seen while the situations develop, on a terminal and in a file."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from headgate.demo.follow import rows
from headgate.demo.live import FOLLOWED_ROWS, Followed, LiveView, table, verdict_text
from tests.unit.demo.made import all_findings, finding, looks

_FOUND = [
    finding("orders / billing", 1_234),
    finding("payments / audit", 7, state="throttled_subscription, hungry"),
    finding("logins / alerts", 2, confidence_level="settling"),
]


def _recorded(width: int, *, terminal: bool) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, record=True)


def test_a_verdict_settles() -> None:
    assert verdict_text(finding("orders / billing")) == "CONSUMER, high"
    assert verdict_text(finding("orders / billing", confidence_level="settling")) == "settling"


def test_a_file_gets_a_line_for_each_subscription_now_and_then() -> None:
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


def test_a_file_gets_every_row_of_a_limit_that_moves_once() -> None:
    console = _recorded(100, terminal=False)
    seen = looks(60)
    with LiveView(console, 60) as view:
        for second in range(61):
            known = rows([look for look in seen if look.at_s - seen[0].at_s <= second], 60)
            view.show(second, _FOUND, "", Followed("a limit that moves", known))
    lines = console.export_text().splitlines()
    assert [line.split()[0] for line in lines if "-> limit" in line] == [
        f"{begin}-{begin + 5}" for begin in range(0, 60, 5)
    ]
    assert lines.count("  a limit that moves") == 6


def test_a_terminal_of_24_lines_has_room_for_all_of_it() -> None:
    console = _recorded(80, terminal=True)
    with LiveView(console, 60) as view:
        known = Followed("a limit that moves", rows(looks(60), 60))
        view.show(60.0, list(all_findings().values()), "note " * 40, known)
    text = console.export_text()
    assert text.count("-> limit") == FOLLOWED_ROWS
    assert "55-60 s  published 100/s -> limit 150/s" in text
    assert len(text.rstrip().splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80


def test_a_terminal_gets_one_table_that_is_drawn_over() -> None:
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
def test_what_matters_fits_on_any_terminal(width: int, state: str) -> None:
    console = _recorded(width, terminal=False)
    console.print(table(_FOUND, width))
    lines = console.export_text().splitlines()
    assert len(lines) == 1 + len(_FOUND)
    assert all(len(line) <= width for line in lines)
    assert state in lines[2]
    assert "THROTTLED_SUBSCRIPTION, high" in lines[2]
    assert "1,234" in lines[1]
