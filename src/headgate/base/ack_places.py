"""Finds places among the ordinals that a subscription has not acknowledged."""

from __future__ import annotations

from headgate.base.ack_set import BLOCK_ORDINALS, AckSet


def after_unacked(acks: AckSet, start: int, count: int, end: int) -> int:
    """The ordinal behind the next ``count`` unacknowledged ones from ``start`` on, which is above
    mark delete; ``end`` if there are fewer below it.

    Takes a step for each block of 4,096 ordinals, and looks at the runs of two of them at most: a
    subscription may have a million runs.
    """
    at = start
    for number in acks.block_numbers(start, end):
        base = number * BLOCK_ORDINALS
        stop = min(base + BLOCK_ORDINALS, end)
        if at < base:  # no block: nothing is acknowledged there
            if count <= base - at:
                return at + count
            count -= base - at
            at = base
        if at == base and stop - base == BLOCK_ORDINALS:
            unacked = BLOCK_ORDINALS - acks.acked_in_block(number)
            if unacked < count:
                count -= unacked
                at = stop
                continue
        for first, last in (*acks.acked_ranges(stop, at), (stop, stop - 1)):
            if count <= first - at:
                return at + count
            count -= first - at
            at = last + 1
    return min(at + count, end)
