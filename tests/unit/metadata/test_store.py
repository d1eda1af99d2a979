"""The first rows of a walk, of which one list is made."""

from __future__ import annotations

from headgate.metadata.store import ROWS_BYTES, first_rows


def test_a_list_ends_with_the_row_that_fills_it_and_the_rest_is_not_read() -> None:
    rows = iter([("a", "0", b"x"), ("a", "1", bytes(ROWS_BYTES)), ("a", "2", b"x")])
    assert [row[1] for row in first_rows(rows)] == ["0", "1"]
    assert [row[1] for row in first_rows(rows)] == ["2"]
    assert first_rows(rows) == []


def test_damaged_values_are_listed_as_they_are() -> None:
    assert first_rows([("a", "0", 7), ("a", "1", "text")]) == [("a", "0", 7), ("a", "1", "text")]
