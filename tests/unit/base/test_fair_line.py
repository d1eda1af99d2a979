"""Owners take turns, and what one of them has stays in order."""

from __future__ import annotations

import pytest

from headgate.base.fair_line import FairLine


def test_owners_take_turns_and_keep_their_order() -> None:
    line: FairLine[int] = FairLine()
    assert not line
    for number in range(4):
        line.add("a", number)
    line.add("b", 10)
    line.add("c", 20)
    line.add("c", 21)
    taken = []
    while line:
        taken.append(line.take())
    assert taken == [("a", 0), ("b", 10), ("c", 20), ("a", 1), ("c", 21), ("a", 2), ("a", 3)]
    with pytest.raises(KeyError):
        line.take()


def test_an_owner_that_comes_back_is_behind_the_others() -> None:
    line: FairLine[int] = FairLine()
    line.add("a", 0)
    line.add("b", 10)
    line.add("b", 11)
    assert line.take() == ("a", 0)
    line.add("a", 1)
    assert [line.take() for _ in range(3)] == [("b", 10), ("a", 1), ("b", 11)]


def test_what_is_left_of_an_owner_comes_before_what_was_added_meanwhile() -> None:
    line: FairLine[int] = FairLine()
    for number in range(3):
        line.add("a", number)
    line.add("b", 10)
    assert len(line) == 2
    owner, items = line.take_all()
    assert items.popleft() == 0
    line.add("a", 3)
    line.give_back(owner, items)
    assert [line.take() for _ in range(4)] == [("b", 10), ("a", 1), ("a", 2), ("a", 3)]
    line.add("a", 4)
    owner, items = line.take_all()
    items.clear()
    line.give_back(owner, items)
    assert not line
