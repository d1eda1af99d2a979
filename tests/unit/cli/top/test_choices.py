"""What keys do to the choices, and choices to the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.cli.top.choices import (
    ORDERS,
    Choices,
    after_key,
    chosen_rows,
    growth_per_s,
    selected_row,
    subject_of,
)
from tests.unit.cli.top.reports import report

ROWS = [
    report("a/b/old", backlogMessages=5, oldestAgeS=900.0, backlogBytes=10),
    report("a/b/large", backlogMessages=90, backlogBytes=9_000),
    report("a/b/grows", "Billing", "NO_CONSUMER", backlogMessages=7, growthMessages=900),
]


def names(choices: Choices) -> list[str]:
    return [row["topic"].rpartition("/")[2] for row in chosen_rows(ROWS, choices)]


def press(*keys: str, choices: Choices | None = None) -> Choices:
    found = choices or Choices()
    for key in keys:
        found = after_key(found, key, chosen_rows(ROWS, found), page=2)
    return found


@pytest.mark.parametrize(
    ("key", "order"),
    [
        ("m", ["large", "grows", "old"]),
        ("b", ["large", "grows", "old"]),
        ("a", ["old", "grows", "large"]),
        ("g", ["grows", "large", "old"]),
        ("n", ["grows", "large", "old"]),
    ],
)
def test_orders(key: str, order: list[str]) -> None:
    assert names(press(key)) == order


def test_s_goes_through_all_orders() -> None:
    seen = [press(*["s"] * times).order for times in range(len(ORDERS) + 1)]
    assert seen == [*ORDERS, ORDERS[0]]


def test_c_goes_through_the_causes_and_back_to_all() -> None:
    assert names(press("c")) == ["large", "old"]
    assert names(press("c", "c")) == ["grows"]
    assert names(press("c", "c", "c")) == []
    assert len(names(press(*["c"] * 9))) == 3
    assert press("c", "escape") == Choices()


def test_a_text_filters_topics_and_subscriptions_in_any_case() -> None:
    typing = press("/", "B", "i", "l")
    assert typing.is_typing
    assert names(typing) == ["grows"]
    kept = press("enter", choices=typing)
    assert (kept.is_typing, kept.text) == (False, "Bil")
    assert press("backspace", choices=typing).text == "Bi"
    assert press("escape", choices=typing) == Choices()
    # Keys with a meaning are text, others are nothing.
    assert press("/", "q", " ", "up").text == "q "


def test_the_selection_stays_with_its_subscription() -> None:
    chosen = press("down")
    assert chosen.selected == subject_of(ROWS[2])
    assert selected_row(chosen_rows(ROWS, press("a", choices=chosen)), chosen) == 1
    gone = chosen_rows(ROWS[:2], chosen)
    assert selected_row(gone, chosen) == 0


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (["up"], 0),
        (["end"], 2),
        (["end", "down"], 2),
        (["end", "k"], 1),
        (["page down"], 2),
        (["end", "page up"], 0),
        (["j", "home"], 0),
    ],
)
def test_moving(keys: list[str], place: int) -> None:
    chosen = press(*keys)
    assert selected_row(chosen_rows(ROWS, chosen), chosen) == place


def test_enter_opens_the_selected_row() -> None:
    assert press("enter").opened == subject_of(ROWS[1])
    assert after_key(Choices(), "enter", [], 2).opened is None
    assert after_key(Choices(), "down", [], 2).selected is None


def test_help_pause_and_quit() -> None:
    helped = press("?")
    assert helped.shows_help
    assert press("down", choices=helped) == Choices()
    assert press("q", choices=helped).is_done
    assert press("p").is_paused
    assert not press("p", "p").is_paused
    assert press("q").is_done
    assert press("z") == Choices()


def test_growth() -> None:
    assert growth_per_s(report("a/b/c", growthMessages=-20, windowS=10.0)) == -2
    assert growth_per_s(report("a/b/c", windowS=0.0)) == 0
    assert replace(Choices(), order="growth").order in ORDERS
