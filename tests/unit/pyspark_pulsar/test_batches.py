"""A batch is taken apart in portions of bounded size, and only as it claims to be."""

from __future__ import annotations

import pytest

from pyspark_pulsar import batches
from pyspark_pulsar.batches import Messages, portions
from pyspark_pulsar.metadata import PartError
from tests.unit.pyspark_pulsar.entry_bytes import field, pairs, part, sized


def test_a_part_of_messages_has_all_columns() -> None:
    whole = Messages(
        [b"a", None, b"c"], [None, b"k", None], [1, 2, None], [[], None, []], range(4, 7)
    )
    assert len(whole) == 3
    assert whole.part(1, 3) == Messages(
        [None, b"c"], [b"k", None], [2, None], [None, []], range(5, 7)
    )
    assert len(whole.part(3, 9)) == 0


def test_each_portion_has_a_bounded_number_of_messages() -> None:
    batch = b"".join([part(b"%d" % each) for each in range(7)])
    assert [each.values for each in portions(batch, 0, 7, 3)] == [
        [b"0", b"1", b"2"],
        [b"3", b"4", b"5"],
        [b"6"],
    ]


def test_usual_and_other_messages_in_one_portion() -> None:
    parts = [part(b"a"), part(b"b", partition_key="k"), part(b"c"), part(b"d", compacted_out=True)]
    first, second = portions(b"".join(parts * 2), 0, 8, 6)
    assert first.values == [b"a", b"b", b"c", b"a", b"b"]
    assert first.keys == [None, b"k", None, None, b"k"]
    assert first.batch_indexes == [0, 1, 2, 4, 5]
    assert (second.values, second.batch_indexes) == ([b"c"], [6])


def test_a_portion_without_a_message() -> None:
    batch = part(b"a", compacted_out=True) + part(b"b")
    assert [each.values for each in portions(batch, 0, 2, 1)] == [[], [b"b"]]


def test_each_portion_has_a_bounded_number_of_properties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PROPERTIES_MAX", 5)
    one = part(b"a", properties=pairs(("a", "1"), ("b", "2")))
    assert [len(each) for each in portions(one * 8, 0, 8, 100)] == [3, 3, 2]
    hidden = part(b"a", compacted_out=True, properties=pairs(("a", "1"), ("b", "2")))
    assert [len(each) for each in portions(hidden * 4 + one, 0, 5, 100)] == [0, 1]


def test_what_is_wrong_shows_up_where_it_is() -> None:
    batch = part(b"a") * 3 + part(b"a", payload_size=2)
    found = portions(batch, 0, 4, 2)
    assert next(found).values == [b"a", b"a"]
    with pytest.raises(PartError, match="wrong size"):
        next(found)


def test_a_payload_size_may_be_zero_and_not_absent() -> None:
    (messages,) = portions(part(b"") + part(b"", partition_key="k"), 0, 2, 9)
    assert messages.values == [b"", b""]
    for fields in (field(8, 1), field(2, b"k")):
        with pytest.raises(PartError, match="wrong size"):
            list(portions(sized(fields) + bytes(6), 0, 1, 9))


def test_the_last_payload_size_counts() -> None:
    (messages,) = portions(part(b"abc", field(3, 3), payload_size=9), 0, 1, 9)
    assert messages.values == [b"abc"]
