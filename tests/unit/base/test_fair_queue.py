"""Whose turn it is."""

from __future__ import annotations

from headgate.base.fair_queue import FairQueue, FairSet, NestedFairQueue, NestedFairSet


def test_owners_take_turns_and_each_has_its_oldest_first() -> None:
    queue: FairQueue[int] = FairQueue()
    for item in range(4):
        queue.add("acme", item)
    queue.add("globex", 10)
    queue.add("globex", 11)
    assert len(queue) == 6
    assert [queue.take() for _ in range(3)] == [0, 10, 1]
    queue.add("initech", 20)
    assert [queue.take() for _ in range(len(queue))] == [11, 2, 20, 3]
    assert not queue


def test_one_that_comes_back_stands_behind_the_others() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.add("acme", 1)
    queue.add("globex", 10)
    assert queue.take() == 1
    queue.add("acme", 2)
    assert queue.take() == 10


def test_one_that_is_taken_out_of_turn_has_had_its_turn() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.add("acme", 1)
    queue.add("globex", 10)
    queue.add("globex", 11)
    queue.add("initech", 20)
    assert queue.owner_among(lambda owner: owner != "acme") == "globex"
    assert queue.owner_among(lambda owner: owner == "umbrella") is None
    assert queue.take_of("globex") == 10
    assert [queue.take() for _ in range(len(queue))] == [1, 20, 11]


def test_one_that_is_put_back_is_the_first_in_the_next_turn_of_its_owner() -> None:
    queue: FairQueue[str] = FairQueue()
    for item in ("a1", "a2", "b1"):
        queue.add(item[0], item)
    queue.put_back("a", queue.take())
    assert [queue.take() for _ in range(2)] == ["b1", "a1"]
    queue.put_back("b", "b1")
    assert [queue.take() for _ in range(len(queue))] == ["a2", "b1"]


def test_nothing_is_left_of_what_is_dropped() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.add("acme", 1)
    queue.clear()
    assert len(queue) == 0
    queue.add("globex", 10)
    assert queue.take() == 10


def test_who_is_dropped_takes_nobody_s_turn() -> None:
    queue: NestedFairQueue[int] = NestedFairQueue()
    for group, owner, first in (("north", "a", 0), ("north", "b", 10), ("south", "c", 20)):
        for item in range(first, first + 3):
            queue.add(group, owner, item)
    queue.add("west", "d", 31)
    assert queue.take() == 0
    queue.drop(lambda item: item % 2 == 1)
    assert len(queue) == 5
    assert [queue.take() for _ in range(5)] == [20, 10, 22, 2, 12]
    assert not queue
    queue.add("west", "d", 31)
    assert queue.take() == 31


def test_groups_take_turns_and_so_do_their_owners() -> None:
    queue: NestedFairQueue[int] = NestedFairQueue()
    for item in range(2):
        queue.add("north", "acme", item)
        queue.add("north", "globex", 10 + item)
    queue.add("south", "initech", 20)
    queue.add("south", "initech", 21)
    assert len(queue) == 6
    assert [queue.take() for _ in range(6)] == [0, 20, 10, 21, 1, 11]
    assert not queue
    queue.add("north", "acme", 1)
    queue.clear()
    assert len(queue) == 0
    queue.add("north", "globex", 2)
    assert queue.take() == 2


def test_how_much_groups_have_and_whose_turn_is_next() -> None:
    queue: NestedFairQueue[int] = NestedFairQueue()
    assert (queue.group_count, queue.count_of("north")) == (0, 0)
    for group, owner, item in (("north", "acme", 1), ("south", "globex", 2), ("north", "acme", 3)):
        queue.add(group, owner, item)
    assert (queue.group_count, queue.count_of("north"), queue.count_of("south")) == (2, 2, 1)
    assert [(queue.next_group, queue.take()) for _ in range(2)] == [("north", 1), ("south", 2)]
    assert (queue.next_group, queue.group_count, queue.count_of("south")) == ("north", 1, 0)


def test_items_of_a_set_wait_once_and_leave_in_any_order() -> None:
    waiting: FairSet[str] = FairSet()
    for item in ("a1", "a2", "a3", "a1"):
        waiting.add("acme", item)
    waiting.add("globex", "g1")
    waiting.discard("acme", "a2")
    waiting.discard("acme", "a2")
    waiting.discard("initech", "i1")
    assert waiting.next_owner == "acme"
    assert [waiting.take() for _ in range(3)] == ["a1", "g1", "a3"]
    assert not waiting


def test_an_item_of_a_set_may_be_taken_out_of_turn() -> None:
    waiting: FairSet[int] = FairSet()
    for owner, item in (("acme", 1), ("globex", 10), ("globex", 11), ("initech", 20)):
        waiting.add(owner, item)
    assert waiting.owner_among(lambda owner: owner != "acme") == "globex"
    assert waiting.owner_among(lambda owner: owner == "umbrella") is None
    assert waiting.take_of("globex") == 10
    assert [waiting.take() for _ in range(3)] == [1, 20, 11]
    waiting.add("acme", 2)
    waiting.discard("acme", 2)
    assert not waiting


def test_groups_of_a_set_take_turns_and_forget_who_leaves() -> None:
    waiting: NestedFairSet[int] = NestedFairSet()
    for number, (group, owner) in enumerate(["aa", "ab", "aa", "bc", "dd"]):
        waiting.add(group, owner, number)
    waiting.add("a", "a", 0)
    waiting.discard("d", "d", 4)
    waiting.discard("d", "d", 4)
    found = []
    while waiting:
        found.append(waiting.take())
    assert found == [("a", 0), ("c", 3), ("b", 1), ("a", 2)]
