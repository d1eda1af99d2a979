"""What a topic knows of its producers' sequence ids, compared with a plain model."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import CorruptionError
from headgate.base.sequence_table import (
    ROW_BYTES,
    Seen,
    SequenceRow,
    SequenceTable,
    SequenceTotal,
    decode_rows,
    encode_rows,
)

NAMES = st.sampled_from(["a", "b", "ü"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), NAMES, st.integers(-3, 12), st.integers(0, 3)),
        st.tuples(st.just("commit"), NAMES, st.integers(0, 4), st.just(0)),
        st.tuples(st.just("fail"), NAMES, st.just(0), st.just(0)),
    ),
    max_size=60,
)


@given(STEPS)
def test_a_message_is_new_if_its_id_is_above_all_that_are_stored_or_staged(
    steps: list[tuple[str, str, int, int]],
) -> None:
    table = SequenceTable()
    stored: dict[str, int] = {}
    staged: list[tuple[int, str, int]] = []
    end = ordinal = 0
    for what, name, first, more in steps:
        if what == "send":
            last_stored = stored.get(name)
            last_staged = max((i for _, n, i in staged if n == name), default=None)
            seen = table.seen(name, first)
            if last_stored is not None and first <= last_stored:
                assert seen is Seen.STORED
            elif last_staged is not None and first <= last_staged:
                assert seen is Seen.STAGED
            else:
                assert seen is Seen.NEW
                table.entry_staged(ordinal, name, first + more)
                staged.append((ordinal, name, first + more))
                ordinal += 1
        elif what == "commit":
            end = min(end + first, ordinal)
            for _, one, last in [move for move in staged if move[0] < end]:
                stored[one] = max(last, stored.get(one, last))
            staged = [move for move in staged if move[0] >= end]
            table.entries_durable(end)
        else:
            staged.clear()
            ordinal = end
            table.entries_lost()
        assert {row.name: row.last_id for row in table.rows(end)} == stored
        everything = dict(stored)
        for _, one, last in staged:
            everything[one] = max(last, everything.get(one, last))
        assert {row.name: row.last_id for row in table.rows(ordinal)} == everything
        assert table.has_staged(name) is any(n == name for _, n, _ in staged)
        assert table.last_id(name) == stored.get(name, -1)


def test_what_is_durable_counts_before_its_receipts_are_sent() -> None:
    table = SequenceTable([SequenceRow("a", 3, 0)])
    table.entry_staged(7, "a", 4)
    table.entry_staged(8, "b", 1)
    table.entry_staged(9, "a", 5)
    assert list(table.rows(9)) == [SequenceRow("a", 4, 0), SequenceRow("b", 1, 0)]
    assert table.last_id("a") == 3


def test_of_more_names_the_one_that_is_gone_for_longest_is_forgotten() -> None:
    table = SequenceTable()
    table.names_max = 3
    for at, name in enumerate("abc"):
        table.store(name, at)
        table.disconnected(name, 1_000 + at)
    table.connected("a")
    table.store("d", 9)
    assert [row.name for row in table.rows(0)] == ["a", "c", "d"]
    for name in "efg":  # all are connected but c, and the table may grow
        table.store(name, 1)
    assert [row.name for row in table.rows(0)] == ["a", "d", "e", "f", "g"]
    assert len(table) == 5
    table.all_disconnected(2_000)
    assert table.forget_inactive(0, 2) == 3
    assert [row.name for row in table.rows(0)] == ["f", "g"]


def test_producers_that_are_gone_for_long_are_forgotten() -> None:
    table = SequenceTable()
    for at, name in enumerate("abcd"):
        table.store(name, at)
        table.disconnected(name, 1_000 * at)
    table.connected("a")
    table.disconnected("unknown", 0)
    assert table.forget_inactive(2_000, 10) == 2
    assert list(table.rows(0)) == [SequenceRow("a", 0, 0), SequenceRow("d", 3, 3_000)]
    assert table.forget_inactive(2_000, 10) == 0


@given(
    st.lists(
        st.builds(
            SequenceRow,
            st.text(max_size=20),
            st.integers(-(1 << 63), (1 << 63) - 1),
            st.integers(0, 1 << 50),
        ),
        unique_by=lambda row: row.name,
    )
)
def test_rows_are_read_as_they_were_stored(rows: list[SequenceRow]) -> None:
    stored = encode_rows(rows)
    assert list(decode_rows(stored)) == rows
    table = SequenceTable(decode_rows(stored))
    assert {row.name: row for row in table.rows(0)} == {row.name: row for row in rows}
    if stored:
        with pytest.raises(CorruptionError):
            list(decode_rows(stored[:-1] + b"" if rows[-1].name else stored[:-1]))


def test_bytes_that_are_no_rows_are_refused() -> None:
    row = encode_rows([SequenceRow("é", 1, 0)])
    for damaged in (row[:5], row[:-2] + b"\xff\xff", row[:-1]):
        with pytest.raises(CorruptionError):
            list(decode_rows(damaged))


def test_a_producer_takes_less_than_400_bytes() -> None:
    count = 10_000
    names = [f"standalone-18c3f0a1b2c-{at}" for at in range(count)]
    table = SequenceTable()
    for at, name in enumerate(names):
        table.store(name, 1_000_000 + at)
        table.disconnected(name, 1_700_000_000_000 + at)
    held = sum(sys.getsizeof(part) for part in (table.last, table._inactive))
    held += sum(map(sys.getsizeof, names))
    held += sum(map(sys.getsizeof, [*table.last.values(), *table._inactive.values()]))
    assert held / count < 400


def total_for_one(share_bytes: int) -> SequenceTotal:
    """A total of which one topic alone may have so much."""
    return SequenceTotal(-(-2 * share_bytes // 3) + 1)


def test_tables_beyond_their_total_forget_who_is_gone_for_longest() -> None:
    total = total_for_one(10 * (ROW_BYTES + 2))
    tables = [SequenceTable(), SequenceTable()]
    for number, table in enumerate(tables):
        table.store(f"{number}0", 7)
        table.join(total, "t")
        table.join(total, "t")
        for producer in range(1, 5):
            table.store(f"{number}{producer}", 7)
    assert total.held_bytes == 10 * (ROW_BYTES + 2)
    tables[0].disconnected("02", 1)
    tables[0].disconnected("01", 2)
    tables[0].store("05", 7)
    assert list(tables[0].last) == ["00", "01", "03", "04", "05"]
    tables[1].store("15", 7)  # all of its producers are connected
    assert len(tables[1].last) == 6
    assert total.held_bytes == 11 * (ROW_BYTES + 2)
    tables[1].disconnected("13", 3)
    assert "13" not in tables[1].last
    assert total.held_bytes == 10 * (ROW_BYTES + 2)
    for table in tables:
        table.leave()
        table.leave()
    assert total.held_bytes == 0


def test_a_table_counts_what_it_knows_of_wide_names() -> None:
    total = SequenceTotal(0)
    table = SequenceTable([SequenceRow("\U0001f600" * 512, 1, 1)])
    table.join(total, "t")
    assert total.held_bytes >= 4 * 512
    table.forget_inactive(1, 10)
    assert total.held_bytes == 0


def test_beyond_the_total_one_that_leaves_before_its_entry_is_durable_does_not_stay() -> None:
    total = SequenceTotal(0)
    table = SequenceTable()
    table.join(total, "t")
    for ordinal, name in enumerate(("a", "b", "c")):
        table.entry_staged(ordinal, name, 7)
        table.disconnected(name, 1)
    table.entry_staged(3, "d", 7)
    table.entries_durable(1)
    assert not table.last
    table.entries_durable(4)
    assert list(table.last) == ["d"]  # it is connected
    table.disconnected("d", 2)
    assert not table.last
    assert total.held_bytes == 0
    table.entry_staged(4, "e", 7)
    table.disconnected("e", 3)
    table.entries_lost()
    table.store("e", 8)
    assert list(table.last) == ["e"]
    assert not table._inactive
    assert not table._leaving


def test_a_producer_that_is_forgotten_before_its_last_entry_is_durable_is_inactive_again() -> None:
    table = SequenceTable()
    for ordinal in range(2):
        table.entry_staged(ordinal, "a", ordinal)
    table.entries_durable(1)
    table.disconnected("a", 5)
    assert table.forget_inactive(5, 10) == 1
    table.entries_durable(2)
    assert list(table.last) == ["a"]
    assert table.forget_inactive(5, 10) == 1
    assert not table.last
    assert not table._leaving


def test_one_that_comes_back_before_its_entry_is_durable_is_connected() -> None:
    table = SequenceTable()
    table.entry_staged(0, "a", 7)
    table.disconnected("a", 5)
    assert list(table.rows(1)) == [SequenceRow("a", 7, 5)]
    table.connected("a")
    table.entries_durable(1)
    assert table.forget_inactive(5, 10) == 0


def test_a_long_name_beyond_the_total_takes_the_place_of_several_short_ones() -> None:
    total = total_for_one(10 * (ROW_BYTES + 1))
    table = SequenceTable()
    table.join(total, "t")
    for name in "abcdefghij":
        table.store(name, 7)
        table.disconnected(name, 1)
    for _ in range(3):
        long = f"{len(table.last)}" * 600
        table.store(long, 7)
        table.disconnected(long, 2)
        assert total.held_bytes <= 10 * (ROW_BYTES + 1)


def test_a_topic_with_very_many_in_all_partitions_makes_others_forget_nobody() -> None:
    total = SequenceTotal(20 * (ROW_BYTES + 3))
    partitions, other = [SequenceTable() for _ in range(10)], SequenceTable()
    for partition in partitions:
        partition.join(total, "large")
    other.join(total, "other")
    for number in range(100, 200):
        partition = partitions[number % 10]
        partition.store(f"{number}", 7)
        partition.disconnected(f"{number}", 1)
    assert total.held_bytes == 30 * (ROW_BYTES + 3)
    for name in ("one", "two"):
        other.store(name, 7)
        other.disconnected(name, 2)
    assert list(other.last) == ["one", "two"]
    for number in range(200, 212):
        partitions[0].store(f"{number}", 7)  # of clients that stay connected
    other.store("tri", 7)
    other.disconnected("tri", 3)
    assert list(other.last) == ["tri"]  # at twice the bound
    for partition in partitions:
        partition.leave()
    assert total.held_bytes == ROW_BYTES + 3
    other.forget_inactive(3, 10)
    assert total.held_bytes == 0


def test_names_do_not_stay_staged_on_a_topic_to_which_somebody_always_sends() -> None:
    """Something is staged at the end of each commit there, by one steady producer. Each other name,
    200 bytes of commands, stayed for ever, and was counted nowhere."""
    table = SequenceTable()
    table.names_max = 10
    for ordinal in range(0, 2_000, 2):
        name = f"name {ordinal}"
        table.connected(name)
        table.entry_staged(ordinal, name, 0)
        table.disconnected(name, ordinal)
        table.entry_staged(ordinal + 1, "steady", ordinal)
        table.entries_durable(ordinal + 1)
        assert not table.has_staged(name)
        assert table.has_staged("steady")
    assert len(table.staged) == 1
    assert not table._leaving
    assert len(table) == 10
    assert table.seen("steady", 1_998) is Seen.STAGED
    assert table.seen("steady", 1_996) is Seen.STORED
    assert table.seen("name 1998", 0) is Seen.STORED
