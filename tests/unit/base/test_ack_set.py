"""AckSet against a plain Python set."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from itertools import count, islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.ack_changes import AckChanges
from headgate.base.ack_set import FEW_RUNS, AckSet
from headgate.base.errors import CorruptionError, InputError
from headgate.base.packed_masks import PackedMasks, Sums
from headgate.base.partial_acks import PartialEntry

END = 20_000
ordinals = st.one_of(st.integers(0, 40), st.integers(0, END - 1), st.integers(4080, 4110))
kinds = st.sampled_from(["ack", "range", "through", "reset", "take", "messages", "messages"])
steps = st.lists(st.tuples(kinds, ordinals, ordinals), max_size=40)


class Model:
    """The acknowledged entries in a plain set, and the messages of the others one by one."""

    def __init__(self) -> None:
        self.acked: set[int] = set()
        self.messages: set[tuple[int, int]] = set()
        """``(ordinal, index)`` of messages of entries that are not acknowledged."""

    def add(self, ordinals: Iterable[int]) -> int:
        """Acknowledge whole entries; return how many are new."""
        before = len(self.acked)
        self.acked.update(ordinals)
        self.messages = {(o, i) for o, i in self.messages if o not in self.acked}
        return len(self.acked) - before

    def add_messages(self, ordinal: int, mask: int) -> int:
        """Acknowledge messages of one entry; return how many are new."""
        if ordinal in self.acked:
            return 0
        before = len(self.messages)
        size = batch_size(ordinal)
        self.messages |= {(ordinal, index) for index in range(size) if mask >> index & 1}
        new = len(self.messages) - before
        if all((ordinal, index) in self.messages for index in range(size)):
            self.add([ordinal])
        return new

    def partials(self, first: int = 0, stop: int = END) -> list[PartialEntry]:
        """What the set must say of partly acknowledged entries."""
        masks: dict[int, int] = {}
        for ordinal, index in self.messages:
            if first <= ordinal < stop:
                masks[ordinal] = masks.get(ordinal, 0) | 1 << index
        return [PartialEntry(o, masks[o], batch_size(o)) for o in sorted(masks)]


def batch_size(ordinal: int) -> int:
    """Every entry has its batch size for ever; some are single messages."""
    return 1 + ordinal % 4


def mask_of(ordinal: int, seed: int) -> int:
    return seed % (1 << batch_size(ordinal))


def marked(model: set[int]) -> int:
    """The mark-delete ordinal that a plain set implies."""
    mark = -1
    while mark + 1 in model:
        mark += 1
    return mark


def do(acks: AckSet, model: Model, step: tuple[str, int, int]) -> None:
    kind, one, two = step
    low, high = min(one, two), max(one, two)
    if kind == "ack":
        assert acks.ack(one) is (model.add([one]) == 1)
    elif kind == "messages":
        mask = mask_of(one, two)
        assert acks.ack_messages(one, mask, batch_size(one)) == model.add_messages(one, mask)
    elif kind == "range":
        assert acks.ack_range(low, high) == model.add(range(low, high + 1))
    elif kind == "through":
        assert acks.ack_through(one) == model.add(range(one + 1))
    elif kind == "reset":
        model.acked, model.messages = set(range(one)), set()
        acks.reset(one - 1)


def same(acks: AckSet, model: Model) -> None:
    mark = marked(model.acked)
    assert acks.mark_delete == mark
    above = sorted(o for o in model.acked if o > mark)
    assert acks.holes_count == len(above)
    assert acks.holes_span == (above[-1] - mark if above else 0)
    assert acks.ranges_count == len(list(acks.acked_ranges()))
    assert [o for a, b in acks.acked_ranges() for o in range(a, b + 1)] == above
    runs = list(acks.acked_ranges())
    assert all(b + 1 < c for (_, b), (c, _) in pairwise(runs))
    assert list(acks.partial_entries()) == model.partials()
    assert (acks.partials is None) is (not model.messages)


@given(steps)
def test_agrees_with_a_plain_set(work: list[tuple[str, int, int]]) -> None:
    acks, model = AckSet(), Model()
    replica = AckSet()
    for step in work:
        do(acks, model, step)
        same(acks, model)
        if step[0] == "take":
            changes = acks.take_changes()
            if changes is not None:
                replica.apply(AckChanges.from_bytes(changes.to_bytes()))
            same(replica, model)
            assert not acks.has_changes()
            assert not replica.has_changes()
        at, end = step[1], step[2]
        acked = model.acked
        expected = next((o for o in range(at, end) if o not in acked), end) if at < end else end
        assert acks.next_unacked(at, end) == expected
        run_end = expected
        while run_end < min(end, expected + 7) and run_end not in acked:
            run_end += 1
        assert acks.unacked_run(at, end, 7) == (expected, run_end)
        assert acks.is_acked(at) is (at in acked)
        below = [ordinal for ordinal in acked if acks.mark_delete < ordinal < end]
        assert acks.holes_below(end) == len(below)
        found = [o for a, b in acks.acked_ranges(end) for o in range(a, b + 1)]
        assert found == sorted(below)
        assert acks.partly_acked(at) == sum(o == at for o, _ in model.messages)
        assert list(acks.partial_entries(at, end)) == model.partials(at, end)
        assert acks.partial_messages(at, end) == sum(at <= o < end for o, _ in model.messages)
    same(AckSet.from_bytes(acks.to_bytes()), model)
    other = AckSet(7)
    other.ack_messages(9, 1, 2)
    other.apply(AckChanges.from_bytes(acks.whole().to_bytes()))
    same(other, model)


@given(steps, st.integers(0, 39), st.integers(0, 39))
def test_changes_applied_to_a_later_state_end_the_same(
    work: list[tuple[str, int, int]], seen: int, again: int
) -> None:
    """A checkpoint may hold some of the changes that replay then applies again."""
    acks, model = AckSet(), Model()
    log: list[AckChanges] = []
    snapshot = acks.to_bytes()
    for at, step in enumerate(work):
        do(acks, model, step)
        changes = acks.take_changes()
        if changes is not None:
            log.append(changes)
        if at == seen:
            snapshot = acks.to_bytes()
    recovered = AckSet.from_bytes(snapshot)
    for changes in log[:again] + log:
        recovered.apply(changes)
    same(recovered, model)


def test_starts_at_the_given_mark() -> None:
    acks = AckSet(9)
    assert acks.mark_delete == 9
    assert acks.is_acked(9)
    assert not acks.is_acked(10)
    assert acks.take_changes() is None


def test_changes_are_the_fewest_runs() -> None:
    acks = AckSet()
    for ordinal in (9, 5, 6, 7, 3, 8, 6):
        acks.ack(ordinal)
    acks.ack_range(20, 22)
    changes = acks.take_changes()
    assert changes == AckChanges(False, -1, ((3, 3), (5, 9), (20, 22)))
    acks.ack_through(6)
    assert acks.take_changes() == AckChanges(False, 9, ())


def test_a_million_ordinals_with_alternating_holes_stay_small() -> None:
    tracemalloc.start()
    acks = AckSet()
    for ordinal in range(1, 400_001, 2):
        acks.ack(ordinal)
    acks.take_changes()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert acks.holes_count == 200_000
    assert size < 1 << 20
    assert acks.next_unacked(0, 400_000) == 0
    assert acks.ack_through(399_999) == 200_000
    assert acks.mark_delete == 399_999 + 0
    assert acks.holes_count == 0


@pytest.mark.parametrize("mark", [-2, -100])
def test_a_mark_below_minus_one_is_refused(mark: int) -> None:
    with pytest.raises(InputError, match="mark_delete"):
        AckSet(mark)
    with pytest.raises(InputError, match="mark_delete"):
        AckSet().reset(mark)


def test_the_last_message_acknowledges_the_entry_and_what_it_waited_for() -> None:
    acks = AckSet()
    acks.ack_range(3, 4)
    assert acks.ack_messages(2, 0b101, 3) == 2
    assert acks.ack_through(1) == 2
    assert acks.ack_messages(2, 0b100, 3) == 0
    assert (acks.mark_delete, acks.is_acked(2), acks.partly_acked(2)) == (1, False, 2)
    assert acks.next_unacked(0, 9) == 2
    assert acks.ack_messages(2, 0b010, 3) == 1
    assert (acks.mark_delete, acks.partly_acked(2), acks.partials) == (4, 0, None)
    assert acks.ack_messages(2, 0b111, 3) == 0


def test_changes_say_all_of_what_an_entry_has_and_only_of_entries_that_changed() -> None:
    acks = AckSet()
    acks.ack_messages(7, 0b0001, 4)
    acks.ack_messages(9, 0b01, 2)
    acks.ack_messages(8, 0b1, 1)
    first = acks.take_changes()
    assert first == AckChanges(
        False, -1, ((8, 8),), (PartialEntry(7, 0b0001, 4), PartialEntry(9, 0b01, 2))
    )
    assert acks.ack_messages(9, 0b01, 2) == 0
    assert acks.ack_messages(9, 0, 2) == 0
    assert not acks.has_changes()
    acks.ack_messages(7, 0b0100, 4)
    assert acks.has_changes()
    assert acks.take_changes() == AckChanges(False, -1, (), (PartialEntry(7, 0b0101, 4),))
    acks.ack_messages(7, 0b0010, 4)
    acks.ack(7)
    assert acks.take_changes() == AckChanges(False, -1, ((7, 7),))


@pytest.mark.parametrize(
    "drop",
    [
        lambda acks: acks.reset(-1),
        lambda acks: acks.ack_through(20),
        lambda acks: acks.ack_range(5, 20),
        lambda acks: [acks.ack(10), acks.ack(12)],
        lambda acks: [acks.ack_messages(10, 0b11, 2), acks.ack_messages(12, 0b11, 2)],
    ],
)
def test_what_covers_partly_acknowledged_entries_takes_their_changes_too(
    drop: Callable[[AckSet], object],
) -> None:
    acks = AckSet()
    for ordinal in (10, 12):
        acks.ack_messages(ordinal, 1, 2)
    drop(acks)
    assert acks.partials is None
    assert acks.partial_messages(0, 100) == 0
    changes = acks.take_changes()
    assert changes is not None
    assert changes.partials == ()


def test_blocks_below_mark_delete_go_also_while_an_entry_is_partly_acknowledged() -> None:
    acks = AckSet()
    acks.ack_messages(50_000, 1, 2)
    for ordinal in [5, 20_000, *range(5), *range(6, 15_000)]:
        acks.ack(ordinal)
    assert (acks.mark_delete, [*acks._blocks]) == (14_999, [20_000 >> 12])
    for ordinal in range(15_000, 20_000):
        acks.ack(ordinal)
    assert (acks.mark_delete, acks.holes_count, acks.partly_acked(50_000)) == (20_000, 0, 1)
    assert acks._blocks == {}


@pytest.mark.parametrize(
    ("mask", "size", "text"),
    [
        (1, 0, "batch of 0 messages; 1 to 1048576"),
        (1, -3, "batch of -3 messages"),
        (1, (1 << 20) + 1, "batch of 1048577 messages"),
        (0b1000, 3, "beyond its batch of 3"),
        (-1, 3, "beyond its batch of 3"),
        (1, 4, "entry 6 is a batch of 3 messages; acknowledged as one of 4"),
    ],
)
def test_inconsistent_messages_are_refused(mask: int, size: int, text: str) -> None:
    acks = AckSet()
    acks.ack_messages(6, 0b010, 3)
    acks.take_changes()
    with pytest.raises(InputError, match=text):
        acks.ack_messages(6, mask, size)
    assert list(acks.partial_entries()) == [PartialEntry(6, 0b010, 3)]
    assert not acks.has_changes()


def test_changes_of_another_batch_size_are_damage() -> None:
    acks = AckSet()
    acks.ack_messages(6, 0b010, 3)
    with pytest.raises(CorruptionError, match="entry 6 is a batch of 3 messages"):
        acks.apply(AckChanges(False, -1, (), (PartialEntry(6, 1, 2),)))


@pytest.mark.parametrize("batch", [10, 100])
def test_a_partly_acknowledged_entry_takes_about_a_hundred_bytes(batch: int) -> None:
    tracemalloc.start()
    acks = AckSet()
    entries = 20_000
    for ordinal in range(1, 2 * entries, 2):
        acks.ack_messages(ordinal, 0b10, batch)
    acks.take_changes()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert acks.partial_messages(0, 1 << 40) == entries
    assert size / entries < 125


@pytest.mark.parametrize("partly", [False, True])
def test_damaged_bytes_are_refused(partly: bool) -> None:
    acks = AckSet(3)
    acks.ack(9)
    if partly:
        acks.ack_messages(11, 0b1, 30)
    whole = acks.to_bytes()
    changes = acks.take_changes()
    assert changes is not None
    for data, read in ((whole, AckSet.from_bytes), (changes.to_bytes(), AckChanges.from_bytes)):
        read(data)
        for cut in range(len(data)):
            with pytest.raises(CorruptionError):
                read(data[:cut])
        with pytest.raises(CorruptionError):
            read(data + b"\0")


def test_an_entry_acknowledged_wholly_and_partly_is_damage() -> None:
    acks = AckSet()
    acks.ack_messages(9, 0b1, 3)
    partial = acks.to_bytes()
    acks.ack(9)
    blocks = acks.to_bytes()
    head = blocks[:12] + partial[12:16]
    with pytest.raises(CorruptionError, match="entry 9 is acknowledged wholly and partly"):
        AckSet.from_bytes(head + blocks[16:] + partial[16:])


@given(st.sets(st.integers(0, 20_000), max_size=60), st.integers(0, 20_000), st.integers(0, 20_000))
def test_ranges_of_a_part_are_those_of_the_whole_set_within_it(
    ordinals: set[int], start: int, stop: int
) -> None:
    acks = AckSet(-1)
    for ordinal in ordinals:
        acks.ack(ordinal)
    found = {o for first, last in acks.acked_ranges(stop, start) for o in range(first, last + 1)}
    above = {o for o in ordinals if o > acks.mark_delete}
    assert found == {o for o in above if start <= o < stop}


def test_the_last_messages_complete_an_entry() -> None:
    acks = AckSet()
    assert acks.acked_mask(3, 3) == 0
    acks.ack_messages(3, 0b001, 3)
    assert acks.acked_mask(3, 3) == 0b001
    assert acks.partial_bytes > 0
    acks.ack_messages(3, 0b110, 3)
    assert acks.partial_bytes == 0


class CountingMasks(PackedMasks):
    """Counts how many masks its sums are asked about."""

    count = 0

    def sums(self, first: int, stop: int) -> Sums:
        found = super().sums(first, stop)
        self.count += found.masks_count
        return found


def test_what_is_partly_acknowledged_behind_the_first_entries_is_not_counted_one_by_one() -> None:
    acks = AckSet(9)
    for ordinal in range(10, 1_010):
        acks.ack_messages(ordinal, 0b11, 4)
    partials = acks.partials
    assert partials is not None
    packed = CountingMasks()
    assert partials._map is not None
    for ordinal, mask in partials._map.items():
        packed.put(ordinal, mask)
    partials._map = packed
    assert acks.partial_messages(10, 5_000) == 2_000
    assert acks.partial_messages(15, 5_000) == 1_990
    assert acks.partial_messages(1_005, 1_010) == 10
    assert packed.count <= 10


@given(steps, steps, st.integers(1, 5))
def test_in_pieces_it_is_encoded_while_it_changes(
    before: list[tuple[str, int, int]], meanwhile: list[tuple[str, int, int]], size: int
) -> None:
    """The changes since the beginning, applied to the result, give the present set."""
    made = AckSet()
    for kind, first, second in before:
        _change(made, kind, first, second)
    made.forget_changes()
    pieces = made.to_bytes_in_pieces(size)
    left = list(meanwhile)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            found = AckSet.from_bytes(end.value)
            break
        for kind, first, second in left[:2]:
            _change(made, kind, first, second)
        del left[:2]
    changes = made.take_changes()
    if changes is not None:
        found.apply(AckChanges.from_bytes(changes.to_bytes()))
    assert found.to_bytes() == made.to_bytes()


def test_entries_that_come_as_fast_as_others_are_encoded_are_left_out() -> None:
    """Clients that acknowledged a message of each of many entries in turn kept the checkpoint of
    all topics from its end."""
    made = AckSet()
    for ordinal in (10, 20, 1_000_000):
        made.ack_messages(ordinal, 1, 4)
    pieces, more = made.to_bytes_in_pieces(2), count(30)
    for _ in islice(pieces, 2):
        for _ in range(4):
            made.ack_messages(next(more), 1, 4)
    with pytest.raises(StopIteration) as end:
        next(pieces)
    found = AckSet.from_bytes(end.value.value)
    assert [entry.ordinal for entry in found.partial_entries()] == [10, 20, 1_000_000]


def _change(acks: AckSet, kind: str, first: int, second: int) -> None:
    if kind == "ack":
        acks.ack(first)
    elif kind == "range":
        acks.ack_range(min(first, second), max(first, second))
    elif kind == "through":
        acks.ack_through(first)
    elif kind == "reset":
        acks.reset(first)
    elif kind == "messages":
        acks.ack_messages(first, 1 + second % ((1 << batch_size(first)) - 1), batch_size(first))


def test_few_runs_are_known_without_going_through_all() -> None:
    acks = AckSet()
    acks.ack_range(10, 200_000)
    assert acks.has_few_runs_from(0)
    acks.ack_range(200_002, 300_000)
    assert not acks.has_few_runs_from(0), "very many blocks"
    assert acks.has_few_runs_from(250_000)
    acks = AckSet()
    for ordinal in range(1, 2 * FEW_RUNS + 1, 2):
        acks.ack(ordinal)
    assert acks.has_few_runs_from(0)
    acks.ack(5_000)
    assert not acks.has_few_runs_from(0)
    assert acks.has_few_runs_from(4_096)
