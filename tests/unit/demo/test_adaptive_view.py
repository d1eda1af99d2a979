"""The view of a quota that fills and a producer that is slowed."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from headgate.demo.adaptive import rows
from headgate.demo.adaptive_view import (
    explained_width,
    heading,
    line,
    print_kept,
    print_slowed,
    table,
)
from tests.unit.demo.made import PAIR, adaptive_snapshots

_ROWS = rows(adaptive_snapshots(60), 60)


def _recorded(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, record=True)


def test_a_line_leads_from_cause_to_effect() -> None:
    assert heading(PAIR) == (
        "videos: its quota fills, its producer is slowed; chats: on the same connection"
    )
    assert line(rows(adaptive_snapshots(3), 12)[0], PAIR).plain == (
        "      0-1 s  quota  5 % -> no limit    -> videos 400/s; chats 100/s"
    )
    assert line(_ROWS[5], PAIR).plain == (
        "    25-30 s  quota 67 % -> limit 121/s -> videos 128/s waits 0.4 s; chats 100/s"
    )
    assert max(len(line(row, PAIR).plain) for row in _ROWS) <= 80
    assert len(heading(PAIR)) + 2 <= 80


@pytest.mark.parametrize(("width", "bar"), [(50, 0), (80, 22), (100, 42)])
def test_bars_use_the_free_width(width: int, bar: int) -> None:
    head, *lines = [text.plain for text in table(_ROWS, width)]
    assert head.split() == ["SECONDS", "PUBLISHED", "LIMIT", "WAIT", "NEIGHBOUR", "QUOTA"]
    assert max(map(len, lines)) <= max(width, len(head))
    assert {text.partition(" %   ")[2].strip("=.") for text in lines} == {""}
    assert {len(text.partition(" %   ")[2]) for text in lines} == {bar}


def test_figures_are_aligned_with_their_headers() -> None:
    head, *_, last = (text.plain for text in table(_ROWS, 80))
    for name, figure in [
        ("SECONDS", "55-60 s"), ("WAIT", "0.5 s"), ("QUOTA", "70 %"),
    ]:  # fmt: skip
        assert head.index(name) + len(name) == last.index(figure) + len(figure)
    assert last.startswith(f"{'55-60 s':>11} {'101/s':>10} {'101/s':>7}")
    assert "  none  0.0 s" in table(rows(adaptive_snapshots(3), 12), 80)[1].plain


def test_the_bar_shows_the_quota_usage() -> None:
    assert table(_ROWS, 100)[-1].plain.endswith("   " + "=" * 29 + "." * 13)


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_and_the_explanation_fit_the_width(width: int) -> None:
    console = _recorded(width)
    explained = "\n".join(["x" * explained_width(console), "Adaptive throttling: slowed."])
    print_slowed(console, PAIR, _ROWS, 1_548_000, explained)
    text = console.export_text()
    assert max(map(len, text.splitlines())) == min(width, 100)
    said = " ".join(text.split())
    assert "would publish 400/s, its consumer processes 100/s: a backlog quota (1.5 MiB," in said
    assert text.endswith("\n    Adaptive throttling: slowed.\n")
    assert "\n  headgate explain videos:\n" in text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (60, "and at the end it may publish about as fast as its consumer; chats kept 100/s."),
        (12, "and its limit still falls, towards the rate of its consumer; chats kept"),
    ],
)
def test_the_summary_states_the_result(seconds: float, said: str) -> None:
    console = _recorded(80)
    snapshots = adaptive_snapshots(seconds)
    print_kept(console, PAIR, snapshots)
    text = " ".join(console.export_text().split())
    most = f"{100 * max(snapshot.use for snapshot in snapshots):.0f} %"
    assert f"The quota was never reached (at most {most} of it)" in text
    assert said in text
