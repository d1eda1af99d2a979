"""The view of a limit that moves."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from headgate.demo.follow import rows
from headgate.demo.follow_view import heading, line, print_timeline, table
from tests.unit.demo.made import MOVING, scene, snapshots

_ROWS = rows(snapshots(60), 60)
_SCENE = scene("relative-limit")


def test_a_line_leads_from_cause_to_effect() -> None:
    assert heading(MOVING, _SCENE) == "parcels / tracking: limit = publish rate + 50/s"
    assert line(_ROWS[5]).plain == (
        "    25-30 s  published 300/s -> limit 350/s -> delivered 350/s -> backlog -50/s"
    )
    assert max(len(line(row).plain) for row in _ROWS) <= 80


@pytest.mark.parametrize(("width", "longest_bar"), [(40, 0), (80, 18), (100, 38)])
def test_bars_use_the_free_width(width: int, longest_bar: int) -> None:
    head, *lines = [text.plain for text in table(_ROWS, width)]
    assert head.split() == ["SECONDS", "PUBLISHED", "LIMIT", "DELIVERED", "BACKLOG", "CHANGE"]
    assert max(map(len, lines)) <= max(width, len(head))
    assert max(text.count("=") + text.count("+") for text in lines) == longest_bar


def test_figures_are_aligned_with_their_headers() -> None:
    head, first = (text.plain for text in table(_ROWS, 80)[:2])
    for name, figure in [("SECONDS", "0-5 s"), ("PUBLISHED", "100/s"), ("CHANGE", "-50/s")]:
        assert head.index(name) + len(name) == first.index(figure) + len(figure)
    assert head.index("BACKLOG") + len("BACKLOG") == first.index("4,950") + len("4,950")


def test_the_bar_shows_the_limit() -> None:
    bars = [text.plain.rpartition("   ")[2] for text in table(_ROWS, 100)[1:]]
    assert bars[1] == "=" * 11 + "+" * 5
    assert bars[6] == "=" * 33 + "+" * 5
    assert bars[8].count("=") == 11
    assert bars[8].count("+") > bars[9].count("+")


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_and_its_summary_fit_the_width(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, record=True)
    seen = snapshots(60)
    print_timeline(console, MOVING, _SCENE, seen, rows(seen, 60))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= min(width, 100)
    said = " ".join(text.split())
    assert "a limit of 50/s above what is published (topic policy, relativeToPublishRate)" in said
    assert "the backlog changed by -53/s." in said
    assert text.count(" s      ") >= len(_ROWS) - 1
