"""What the memory of a process leaves to tenants."""

from __future__ import annotations

from headgate.base.memory_room import NoMemoryLimit


def test_without_a_limit_all_of_each_bound_is_there() -> None:
    room = NoMemoryLimit()
    assert room.part == 1
    assert room.may_keep_more("acme")
