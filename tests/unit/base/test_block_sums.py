"""The sums of blocks are those of what is acknowledged in them, whatever happened before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.ack_set import BLOCK_ORDINALS, AckSet
from headgate.base.block_sums import Piece, add_acked, learn, pieces_of

ENTRIES = 4 * BLOCK_ORDINALS


def messages_of(ordinal: int) -> int:
    return 1 + ordinal % 3


def size_of(ordinal: int) -> int:
    return 10 + ordinal % 7


def counted(acks: AckSet, first: int, stop: int) -> list[int]:
    acked = [o for a, b in acks.acked_ranges(stop, first) for o in range(a, b + 1)]
    return [len(acked), sum(map(messages_of, acked)), sum(map(size_of, acked))]


def ack(acks: AckSet, ordinal: int) -> None:
    """As a subscription does."""
    if acks.ack(ordinal) and ordinal > acks.mark_delete:
        add_acked(acks, ordinal, messages_of(ordinal), size_of(ordinal))


EDGES = [edge + by for edge in range(0, ENTRIES, BLOCK_ORDINALS) for by in range(-3, 4)]
ordinals = st.one_of(
    st.integers(0, ENTRIES - 1), st.sampled_from([o for o in EDGES if 0 <= o < ENTRIES])
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["ack", "ack", "ack", "run", "range", "through", "reset", "learn"]),
        ordinals,
        st.integers(1, 40),
    ),
    max_size=40,
)


@given(steps, ordinals)
def test_what_is_known_is_what_is_acknowledged(story: list[tuple[str, int, int]], end: int) -> None:
    acks = AckSet()
    for kind, ordinal, count in story:
        if kind == "ack":
            ack(acks, ordinal)
        elif kind == "run":
            for each in range(ordinal, min(ordinal + count, ENTRIES)):
                ack(acks, each)
        elif kind == "range":
            acks.ack_range(ordinal, ordinal + count)
        elif kind == "through":
            acks.ack_through(ordinal)
        elif kind == "reset":
            acks.reset(ordinal)
        else:
            for piece in pieces_of(acks, acks.mark_delete + 1, ordinal):
                learn(acks, piece, counted(acks, piece.first, piece.stop))
        first = acks.mark_delete + 1
        total = [0, 0, 0]
        for piece in pieces_of(acks, first, max(end, first)):
            there = counted(acks, piece.first, piece.stop)
            assert piece.sums is None or piece.sums == there
            total = [one + other for one, other in zip(total, there, strict=True)]
        assert total == counted(acks, first, max(end, first))
        assert acks.sums.keys() <= set(acks.block_numbers(0, None))


def test_blocks_beyond_the_mark_delete_position_are_known() -> None:
    acks = AckSet()
    for ordinal in range(1, 3 * BLOCK_ORDINALS, 2):
        ack(acks, ordinal)
    near, *far = pieces_of(acks, 0, ENTRIES)
    assert near == Piece(0, BLOCK_ORDINALS, None)
    assert [piece.first for piece in far] == [BLOCK_ORDINALS, 2 * BLOCK_ORDINALS]
    assert all(piece.sums for piece in far)
    assert next(pieces_of(acks, BLOCK_ORDINALS + 1, ENTRIES)).sums is None, "a part of a block"
    acks.ack_through(BLOCK_ORDINALS + 10)
    assert list(acks.sums) == [2]
