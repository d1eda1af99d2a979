"""What one owner may have of what all share."""

from __future__ import annotations

from headgate.base.owner_share import has_its_share


def test_one_owner_alone_leaves_a_fourth_of_what_all_may_have() -> None:
    assert not has_its_share({}, "a", 100)
    assert not has_its_share({"a": 149}, "a", 100)
    assert has_its_share({"a": 150}, "a", 100)


def test_owners_share_it_and_each_has_a_part_in_any_case() -> None:
    taken = {"a": 100, "b": 60, "c": 1}
    assert has_its_share(taken, "a", 100)
    assert has_its_share(taken, "b", 100)
    assert not has_its_share(taken, "c", 100)
    assert not has_its_share(taken, "d", 100)
    many = {f"tenant{number}": 20 for number in range(20)}
    assert not has_its_share({**many, "a": 24}, "a", 100)
    assert has_its_share({**many, "a": 25}, "a", 100)
