"""Which messages of partly acknowledged entries are acknowledged, and how that is stored."""

from __future__ import annotations

import gc
import random
import struct
import tracemalloc
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import CorruptionError, InputError
from headgate.base.packed_masks import LEAF_MASKS_MAX
from headgate.base.partial_acks import (
    BATCH_MESSAGES_MAX,
    CUT_OFF,
    ENTRY_BYTES,
    MAP_BYTES,
    REST_ACKED,
    SET_BYTES,
    PartialAcks,
    PartialEntry,
    check_batch,
    decode_partials,
    encode_partials,
)


@st.composite
def some_entries(draw: st.DrawFn) -> list[PartialEntry]:
    """Any sound list of partly acknowledged entries above ordinal 4."""
    entries = []
    for ordinal in sorted(draw(st.sets(st.integers(5, 300), max_size=20))):
        size = draw(st.sampled_from([2, 3, 7, 8, 9, 64, 1000]))
        whole = (1 << size) - 1
        mask = draw(st.integers(1, draw(st.sampled_from([whole - 1, min(whole - 1, 300)]))))
        entries.append(PartialEntry(ordinal, draw(st.sampled_from([mask, whole ^ mask])), size))
    return entries


def kept(entries: list[PartialEntry]) -> PartialAcks:
    partials = PartialAcks()
    for entry in reversed(entries):
        partials.put(entry)
    return partials


@given(some_entries())
def test_there_and_back(entries: list[PartialEntry]) -> None:
    data = encode_partials(entries)
    assert decode_partials(b"head" + data, 4, len(entries), 4) == tuple(entries)
    for count in (len(entries) - 1, len(entries) + 1):
        with pytest.raises(CorruptionError):
            decode_partials(data, 0, count, 4) if count >= 0 else decode_partials(b"?", 0, 0, 4)


def test_the_stored_form_is_frozen() -> None:
    data = encode_partials([PartialEntry(5, 0b1_0000_0010, 9)])
    assert data.hex() == "0500000000000000" + "09000000" + "0201"


def test_what_is_alike_to_the_end_of_a_batch_is_not_stored() -> None:
    """An acknowledgement of thirty bytes stored a mask of the whole batch."""
    few, all_but_few = PartialEntry(5, 0b101, 65_536), PartialEntry(6, (1 << 65_536) - 6, 65_536)
    data = encode_partials([few, all_but_few])
    assert data.hex() == (
        "0500000000000000" + "00000180" + "01000000" + "05"
        "0600000000000000" + "000001c0" + "01000000" + "fa"
    )  # fmt: skip
    assert decode_partials(data, 0, 2, 4) == (few, all_but_few)
    middle = PartialEntry(5, 1 << 32_768, 65_536)
    assert len(encode_partials([middle])) == 16 + 4_097


@pytest.mark.parametrize(
    ("head", "mask", "text"),
    [
        (65_536 | CUT_OFF, b"", "cut short"),
        (65_536 | CUT_OFF, struct.pack("<I", 2) + b"x", "cut short"),
        (65_536 | CUT_OFF, struct.pack("<I", 9_000) + bytes(9_000), "9000 bytes of mask"),
        (1 << 21 | CUT_OFF, struct.pack("<I", 1) + b"x", "2097152 messages"),
        (65_536 | CUT_OFF, struct.pack("<I", 1) + b"\0", "not of some"),
        (65_536 | CUT_OFF | REST_ACKED, struct.pack("<I", 1) + b"\xff", "not of some"),
        (65_536 | REST_ACKED, bytes(8_192), "out of order, of"),
    ],
)
def test_what_is_no_mask_that_is_cut_off_is_damage(head: int, mask: bytes, text: str) -> None:
    with pytest.raises(CorruptionError, match=text):
        decode_partials(struct.pack("<QI", 5, head) + mask, 0, 1, 4)


@pytest.mark.parametrize(
    ("ordinal", "size", "mask", "text"),
    [
        (4, 9, b"\2\0", "out of order"),
        (5, BATCH_MESSAGES_MAX + 1, b"\2" * 131_073, "out of order, of 1048577 messages"),
        (5, 17, b"\2\0", "cut short"),
        (5, 9, b"\0\0", "not of some"),
        (5, 9, b"\xff\1", "not of some"),
        (5, 9, b"\0\2", "not of some"),
        (5, 1, b"\1", "not of some"),
        (5, 0, b"", "not of some"),
    ],
)
def test_what_no_set_holds_is_damage(ordinal: int, size: int, mask: bytes, text: str) -> None:
    data = struct.pack("<QI", ordinal, size) + mask
    with pytest.raises(CorruptionError, match=text):
        decode_partials(data, 0, 1, 4)


def test_the_same_entry_twice_is_damage() -> None:
    entry = PartialEntry(5, 1, 2)
    with pytest.raises(CorruptionError, match="out of order"):
        decode_partials(encode_partials([entry, entry]), 0, 2, 4)


@given(some_entries(), st.integers(0, 310), st.integers(0, 310))
def test_ranges(entries: list[PartialEntry], first: int, stop: int) -> None:
    partials = kept(entries)
    within = [entry for entry in entries if first <= entry.ordinal < stop]
    assert list(partials.entries()) == entries
    assert list(partials.entries(first)) == [e for e in entries if e.ordinal >= first]
    assert list(partials.entries(first, stop)) == within
    counts = [entry.acked_mask.bit_count() for entry in within]
    assert [partials.acked_messages(entry.ordinal) for entry in within] == counts
    assert partials.messages_within(first, stop) == sum(counts)
    assert partials.drop(first, stop) == len(within)
    assert partials.drop(first, stop) == 0
    left = [entry for entry in entries if entry not in within]
    assert partials.messages == sum(entry.acked_mask.bit_count() for entry in left)
    assert (len(partials), list(partials.entries())) == (len(left), left)
    assert partials.take_changed() == tuple(left)


def test_only_what_changed_is_taken() -> None:
    partials = kept([PartialEntry(3, 1, 4), PartialEntry(9, 1, 2)])
    assert partials.has_changed()
    assert len(partials.take_changed()) == 2
    assert not partials.has_changed()
    assert partials.take_changed() == ()
    partials.put(PartialEntry(3, 5, 4))
    assert partials.take_changed() == (PartialEntry(3, 5, 4),)
    assert partials.messages == 3


def test_a_mask_belongs_to_its_batch_size() -> None:
    partials = kept([PartialEntry(3, 0b101, 4)])
    assert partials.acked_mask(3, 4) == 0b101
    assert partials.acked_mask(4, 9) == 0
    assert partials.acked_messages(4) == 0
    with pytest.raises(InputError, match="entry 3 is a batch of 4 messages"):
        partials.acked_mask(3, 5)


@pytest.mark.parametrize("size", [1, BATCH_MESSAGES_MAX])
def test_batches_up_to_the_bound_are_allowed(size: int) -> None:
    check_batch(1, (1 << size) - 1, size)
    with pytest.raises(InputError, match="beyond its batch"):
        check_batch(1, 1 << size, size)
    with pytest.raises(InputError, match="1 to 1048576 is allowed"):
        check_batch(1, 0, BATCH_MESSAGES_MAX + 1)


@given(some_entries(), st.integers(0, 310), st.integers(0, 310))
def test_what_is_left_and_what_it_takes(entries: list[PartialEntry], first: int, stop: int) -> None:
    partials = kept(entries)
    for entry in entries:
        assert entry.ordinal in partials
        found = partials.left_of(entry.ordinal)
        assert found is not None
        assert found[0] == entry.acked_mask.bit_count()
        assert found[1] ^ entry.acked_mask == (1 << entry.batch_size) - 1
        assert entry.ordinal <= partials.highest
    ordinals = [entry.ordinal for entry in entries]
    expected = min([o for o in ordinals if first <= o < stop], default=max(first, stop))
    assert partials.first_within(first, max(first, stop)) == expected
    for entry in entries:
        partials.put(entry._replace(acked_mask=entry.acked_mask))
    entries_bytes = sum(ENTRY_BYTES + e.batch_size // 8 for e in entries)
    map_bytes = MAP_BYTES if len(entries) > 1 else 0
    assert partials.size_bytes == SET_BYTES + map_bytes + entries_bytes
    assert partials.left_of(4) is None
    partials.drop(0, 400)
    assert partials.size_bytes == SET_BYTES


MESSAGES = 1_000
PATTERNS: dict[str, Callable[[random.Random], int]] = {
    "prefix": lambda chance: (1 << chance.randrange(1, MESSAGES)) - 1,
    "random half": lambda chance: chance.getrandbits(MESSAGES - 1) | 1,
    "few holes": lambda chance: (
        (1 << MESSAGES) - 1 - sum(1 << hole for hole in chance.sample(range(MESSAGES), 5))
    ),
    "few": lambda chance: sum(1 << one for one in chance.sample(range(MESSAGES), 5)),
    "every second": lambda _: sum(1 << one for one in range(0, MESSAGES, 2)),
}


def taken_by(
    ordinals: Iterable[int],
    mask: Callable[[random.Random], int],
    sets_count: int = 1,
    dropped: Iterable[int] = (),
) -> tuple[float, float]:
    """Bytes that an entry takes, as Python's allocator counts them and as its set says."""
    chance = random.Random(7)
    made: list[PartialAcks] = []
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(sets_count):
        partials = PartialAcks()
        for ordinal in ordinals:
            partials.put(PartialEntry(ordinal, mask(chance), MESSAGES))
            partials.take_changed()
        for ordinal in dropped:
            partials.drop(ordinal, ordinal + 1)
        made.append(partials)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    entries_count = sum(len(partials) for partials in made)
    return taken / entries_count, sum(partials.size_bytes for partials in made) / entries_count


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_batch_of_a_thousand_messages_takes_at_most_160_bytes(pattern: str) -> None:
    ordinals = range(10**12, 10**12 + 20_000, 10)
    taken, said = taken_by(ordinals, PATTERNS[pattern])
    assert taken <= 160
    assert taken <= said <= 160
    if pattern in ("prefix", "few holes", "few"):
        assert taken <= 60


def test_the_worst_order_of_acknowledgements_is_within_160_bytes_too() -> None:
    shuffled = list(range(0, 20_000, 10))
    random.Random(3).shuffle(shuffled)
    for ordinals in (shuffled, range(20_000, 0, -10)):
        taken, said = taken_by(ordinals, PATTERNS["random half"])
        assert taken <= 160
        assert taken <= said


def test_what_removals_leave_is_within_160_bytes_too() -> None:
    ordinals = range(LEAF_MASKS_MAX * 40)
    dropped = [o for o in ordinals if o % LEAF_MASKS_MAX > LEAF_MASKS_MAX * 3 // 8]
    taken, said = taken_by(ordinals, PATTERNS["random half"], dropped=dropped)
    assert taken <= 160
    assert taken <= said


def test_a_single_batch_takes_little_more_than_its_messages() -> None:
    """Most subscriptions have one at a time: that in which their consumer is."""
    taken, said = taken_by([10**12], PATTERNS["random half"], sets_count=100)
    assert taken <= 350
    assert taken <= said
    # Also if the ones before it are whole by now.
    taken, said = taken_by(range(3), PATTERNS["random half"], sets_count=100, dropped=range(2))
    assert taken <= 350
    assert taken <= said


def test_two_batches_take_no_more_than_the_set_says() -> None:
    taken, said = taken_by([10**12, 10**12 + 1], PATTERNS["random half"], sets_count=100)
    assert taken <= said


@given(st.integers(0, 1 << 30))
def test_it_is_a_dictionary_in_whatever_order_entries_begin_and_end(seed: int) -> None:
    chance = random.Random(seed)
    partials, model = PartialAcks(), dict[int, PartialEntry]()
    for _ in range(60):
        ordinal = chance.choice([chance.randrange(12), *partials_latest(partials)])
        if chance.random() < 0.3:
            stop = ordinal + chance.choice([1, 1, 3, 12])
            gone = [o for o in model if ordinal <= o < stop]
            assert partials.drop(ordinal, stop) == len(gone)
            for one in gone:
                del model[one]
        else:
            size = model[ordinal].batch_size if ordinal in model else chance.choice([2, 9, 100])
            model[ordinal] = PartialEntry(ordinal, chance.randrange(1, (1 << size) - 1), size)
            partials.put(model[ordinal])
        assert list(partials.entries()) == [model[o] for o in sorted(model)]
        assert len(partials) == len(model)
        assert partials.messages == sum(e.acked_mask.bit_count() for e in model.values())
        for other in range(13):
            assert (other in partials) is (other in model)
            assert partials.mask_of(other) == (model[other].acked_mask if other in model else 0)
        entries_bytes = sum(ENTRY_BYTES + e.batch_size // 8 for e in model.values())
        assert partials.size_bytes - entries_bytes in (SET_BYTES, SET_BYTES + MAP_BYTES)
    assert partials.take_changed() == tuple(model[o] for o in sorted(model))


def partials_latest(partials: PartialAcks) -> list[int]:
    """The highest entry, if there is one: most acknowledgements are of it."""
    return [entry.ordinal for entry in partials.entries()][-1:]
