"""Screens of several sizes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from headgate.cli.top.choices import Choices, chosen_rows, subject_of
from headgate.cli.top.table import top_lines
from tests.unit.cli.top.reports import answer, report, timeline

ORDERS = report(
    "acme/shop/orders", "billing", "THROTTLED_TOPIC", backlogMessages=12_345_678,
    backlogBytes=5 << 20, growthMessages=700, timeline=timeline(("NONE", 0), ("CONSUMER", 8)),
)  # fmt: skip
MAIL = report("acme/shop/mail", "sender", backlogMessages=400, growthMessages=-100)
LONG = report(f"acme/shop/{'very-' * 30}long", "s" * 70, confidenceLevel="low", backlogMessages=9)
THREE = answer(ORDERS, MAIL, LONG, withBacklog=12)


def screen(
    found: Any, width: int, height: int = 24, choices: Choices | None = None, **how: bool
) -> list[str]:
    choices = choices or Choices()
    rows = chosen_rows(found["subscriptions"], choices)
    how = {"is_drawn": False, "is_old": False} | how
    lines = top_lines(found, rows, choices, width, height, **how)
    assert len(lines) == height
    assert all(line.cell_len <= width for line in lines)
    return [line.plain.rstrip() for line in lines]


def test_a_wide_screen_has_everything() -> None:
    lines = screen(answer(ORDERS, MAIL), 130, 12)
    assert lines[:8] == [
        "headgate top  localhost:8080  2026-11-21 18:18:35 UTC  2 subscriptions, 2 with a backlog",
        "Consumer 1   Topic limit 1",
        "order: most messages",
        "cause                topic  subscription        messages↓    oldest     growth   empty in "
        "      size  last hour",
        "Topic limit          acme/shop/orders  billing       12 M      61 s      +70/s          - "
        "     5 MiB" + " " * 29 + "c",
        "Consumer             acme/shop/mail  sender           400      61 s      -10/s       40 s "
        "     2 KiB",
        "",
        "",
    ]  # fmt: skip
    assert lines[-3:] == [
        "",
        "acme/shop/orders  subscription billing",
        "The consumer acknowledges too little of acme/shop/orders.",
    ]


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (200, ["messages", "oldest", "growth", "empty in", "size", "last hour"]),
        (100, ["messages", "oldest", "growth", "empty in"]),
        (80, ["messages", "oldest", "growth"]),
        (70, ["messages", "oldest"]),
        (50, ["messages"]),
    ],
)
def test_a_narrow_one_leaves_columns_out(width: int, heads: list[str]) -> None:
    known = ("messages", "oldest", "growth", "empty in", "size", "last hour")
    head = next(line for line in screen(THREE, width) if line.startswith("cause"))
    assert [name for name in known if name in head] == heads


@pytest.mark.parametrize("width", [1, 20, 40, 60, 80, 132, 300])
@pytest.mark.parametrize("height", [1, 5, 10, 50])
def test_any_size_is_kept(width: int, height: int) -> None:
    screen(THREE, width, height)
    screen(answer(), width, height)


def test_of_a_long_topic_the_end_stays_and_of_a_long_subscription_the_beginning() -> None:
    line = next(line for line in screen(THREE, 80) if "…" in line and "long" in line)
    assert re.search(r"…\S*-long  s+… ", line)


def test_the_selected_row_is_on_the_screen_with_its_sentence() -> None:
    many = answer(*(report(f"t/n/{n:03}", backlogMessages=1_000 - n) for n in range(200)))
    chosen = replace(Choices(), selected=subject_of(many["subscriptions"][150]))
    lines = screen(many, 80, 20, chosen)
    assert any(line.startswith("Consumer") and "t/n/150" in line for line in lines)
    assert "t/n/150  subscription s" in lines
    assert not any("t/n/000" in line for line in lines)


def test_a_confidence_that_is_not_high_is_said() -> None:
    chosen = replace(Choices(), selected=subject_of(LONG))
    assert "(confidence low)" in " ".join(screen(THREE, 130, choices=chosen))


def test_what_concerns_no_row_stands_above() -> None:
    found = answer(
        MAIL,
        storage={"sentence": "the disk is nearly full"},
        damaged=[{"topic": "persistent://t/n/d", "subscription": None, "damage": "block 7"}],
        publishing=[{"topic": f"persistent://t/n/p{n}", "sentence": "waits"} for n in range(3)],
        quotas=[{"topic": "persistent://t/n/p0", "quota": {"sentence": "over its quota"}},
                {"topic": "persistent://t/n/q", "quota": {"sentence": "breaks soon"}}],
    )  # fmt: skip
    assert screen(found, 80)[2:6] == [
        "The disk is nearly full",
        "t/n/d is damaged: block 7",
        "t/n/p0: waits",
        "and 3 more: headgate explain",
    ]


def test_what_is_filtered_is_said() -> None:
    chosen = replace(Choices(), cause="BROKER", text="x", is_typing=True, order="age")
    lines = screen(THREE, 120, choices=chosen)
    assert (
        "order: oldest message   cause: Broker   text: x_   the 3 largest backlogs of 12" in lines
    )
    assert "No subscription matches. Esc shows all again." in lines
    assert "oldest↓" in next(line for line in lines if line.startswith("cause"))
    assert "Nothing waits: no subscription has a backlog." in screen(answer(), 80)


def test_inferred_and_damaged_rows_are_marked() -> None:
    found = answer(report("a/b/c", evidence="inferred"), report("a/b/d", damage="block 7"))
    lines = screen(found, 100)
    assert any(line.startswith("~Consumer ") for line in lines)
    assert any(line.startswith("DAMAGED ") for line in lines)


def test_what_an_agent_does_not_know_is_no_number() -> None:
    found = answer(
        report("a/b/c", evidence="inferred", backlogBytes=None, oldestAgeS=None),
        storage=None, notSeen=["broker b:8080, for 9 s: it refuses the connection"],
    )  # fmt: skip
    for order in ("size", "age"):
        lines = screen(found, 110, choices=replace(Choices(), order=order))
        row = next(line for line in lines if line.startswith("~Consumer"))
        assert row.split()[-4:] == ["-", "+5/s", "-", "-"]
        assert "Not seen: broker b:8080, for 9 s: it refuses the connection" in lines


def test_names_cannot_control_the_terminal() -> None:
    assert not any("\x1b" in line for line in screen(answer(report("a/b/\x1b[2J", "\x07")), 90))


def test_colours_repeat_the_words_and_old_figures_are_grey() -> None:
    assert screen(THREE, 80, is_drawn=True) == screen(THREE, 80)
    rows = chosen_rows(THREE["subscriptions"], Choices())
    for line in top_lines(THREE, rows, Choices(), 80, 20, is_drawn=True, is_old=True):
        assert not line.plain.strip() or any(str(span.style) == "dim" for span in line.spans)
