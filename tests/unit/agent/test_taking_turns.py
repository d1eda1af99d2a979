"""Of very many things of one owner those of others are not left out."""

from __future__ import annotations

from headgate.agent.taking_turns import taking_turns


def test_owners_take_turns_and_the_largest_come_first() -> None:
    items = [("a", 5, "a5"), ("b", 1, "b1"), ("a", 9, "a9"), ("a", 7, "a7"), ("b", 8, "b8")]
    assert taking_turns(items, 9) == ["a9", "b8", "a7", "b1", "a5"]
    assert taking_turns(items, 3) == ["a9", "b8", "a7"]
    assert taking_turns(iter(items), 1) == ["a9"]
    assert taking_turns(items, 0) == []
    assert taking_turns([], 3) == []


def test_of_equal_keys_those_that_came_first() -> None:
    items = [("a", 0, "first"), ("b", 0, "second"), ("a", 0, "third"), ("b", 0, "fourth")]
    assert taking_turns(items, 3) == ["first", "second", "third"]
    assert taking_turns([("a", 1, {}), ("a", 1, {"not": "compared"})], 1) == [{}]
