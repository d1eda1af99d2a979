"""Clients whose ended connections still take much begin no more that waits."""

from __future__ import annotations

from typing import cast

from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.left_memory import (
    LEFT_PART,
    RESUMED_AT_ONCE,
    LeftMemory,
)

BOUND = 1_000


class Connection:
    """Notes that it goes on."""

    def __init__(self) -> None:
        self.resumed = 0

    def resume_soon(self) -> None:
        self.resumed += 1


def connections(count: int) -> tuple[list[Connection], list[ClientConnection]]:
    made = [Connection() for _ in range(count)]
    return made, cast(list[ClientConnection], made)


def crowded() -> LeftMemory:
    memory = LeftMemory(lambda: BOUND * LEFT_PART)
    memory.leave("crowd", BOUND + 1)
    memory.leave("other", 10)
    return memory


def test_those_with_the_most_wait_and_others_do_not() -> None:
    memory, (_, (one, other)) = crowded(), connections(2)
    assert memory.makes_wait("crowd", one)
    assert not memory.makes_wait("other", other)
    assert not memory.makes_wait("new", other)
    assert memory.total == BOUND + 11


def test_a_few_go_on_with_each_that_is_freed_and_all_at_the_end() -> None:
    memory, (made, waiting) = crowded(), connections(10)
    for one in waiting:
        assert memory.makes_wait("crowd", one)
    memory.leave("crowd", -1)
    assert not sum(each.resumed for each in made), "there is no room yet"
    memory.leave("crowd", -20)
    memory.leave("crowd", -20)
    assert [each.resumed for each in made] == [1] * 2 * RESUMED_AT_ONCE + [0] * 6
    assert not memory.makes_wait("crowd", waiting[0])
    memory.leave("other", -10)
    assert sum(each.resumed for each in made) == 2 * RESUMED_AT_ONCE
    memory.leave("crowd", -(BOUND - 40))
    assert [each.resumed for each in made] == [1] * 10
    assert not memory._waiting


def test_one_that_ends_while_it_waits_is_forgotten() -> None:
    memory, (made, waiting) = crowded(), connections(2)
    for one in (*waiting, waiting[0]):
        memory.makes_wait("crowd", one)
    memory.forget("crowd", waiting[0])
    memory.forget("other", waiting[0])
    memory.leave("crowd", -BOUND)
    assert [each.resumed for each in made] == [0, 1]
    memory.leave("crowd", BOUND)
    memory.makes_wait("crowd", waiting[1])
    memory.forget("crowd", waiting[1])
    assert not memory._waiting
