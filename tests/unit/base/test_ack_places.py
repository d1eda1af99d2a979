"""Places among the ordinals that a subscription has not acknowledged."""

from __future__ import annotations

from random import Random

from headgate.base.ack_places import after_unacked
from headgate.base.ack_set import BLOCK_ORDINALS, AckSet


def one_by_one(acks: AckSet, start: int, count: int, end: int) -> int:
    """The ordinal behind the next ``count`` unacknowledged ones, asked for each of them."""
    at = start
    while count and at < end:
        at = acks.next_unacked(at, end)
        if at < end:
            at, count = at + 1, count - 1
    return at


def random_acks(chance: Random, end: int) -> AckSet:
    acks = AckSet(chance.choice((-1, chance.randrange(end // 2))))
    for _ in range(chance.randrange(40)):
        first = chance.randrange(end)
        length = chance.choice((1, 3, 64, BLOCK_ORDINALS, BLOCK_ORDINALS + 9))
        acks.ack_range(first, min(first + length, end) - 1)
    return acks


def test_it_is_the_ordinal_that_one_by_one_are_found() -> None:
    for seed in range(300):
        chance = Random(seed)
        end = chance.choice((10, BLOCK_ORDINALS - 1, 2 * BLOCK_ORDINALS, 3 * BLOCK_ORDINALS + 7))
        acks = random_acks(chance, end)
        first = acks.mark_delete + 1
        start = chance.choice((first, chance.randrange(first, end + 1)))
        for count in (0, 1, chance.randrange(end), BLOCK_ORDINALS, end, 10**9):
            expected = one_by_one(acks, start, count, end)
            found = after_unacked(acks, start, count, end)
            # Behind it nothing else is acknowledged by a skip: also the end of the topic is right.
            assert acks.next_unacked(found, end) == acks.next_unacked(expected, end), (seed, count)


def test_of_the_next_none_it_is_the_start() -> None:
    acks = AckSet()
    acks.ack(1)
    assert after_unacked(acks, 0, 0, 10) == 0
    assert after_unacked(acks, 0, 1, 10) == 1
    assert after_unacked(acks, 0, 2, 10) == 3
