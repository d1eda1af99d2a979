"""What every metadata store must do; a test file per store runs these."""

from __future__ import annotations

from collections.abc import Callable

from headgate.metadata.store import ROWS_BYTES, MetadataStore, Write

Reopen = Callable[[MetadataStore], MetadataStore]


def keeps_what_was_committed(store: MetadataStore, reopen: Reopen) -> None:
    store.commit([Write("a", "1", b"x"), Write("a", "2", b"y"), Write("b", "1", b"z")])
    store.commit([Write("a", "1", None), Write("b", "1", b"zz"), Write("b", "none", None)])
    expected = {("a", "2"): b"y", ("b", "1"): b"zz"}
    assert store.load() == expected
    again = reopen(store)
    assert again.load() == expected
    again.close()


def the_last_write_of_a_row_wins(store: MetadataStore, reopen: Reopen) -> None:
    store.commit([Write("a", "1", b"x"), Write("a", "1", None), Write("a", "1", b"y")])
    again = reopen(store)
    assert again.load() == {("a", "1"): b"y"}
    again.close()


def keeps_any_text_and_bytes(store: MetadataStore, reopen: Reopen) -> None:
    key, value = "persistent://a/b/\u00fc'\" %", bytes(range(256))
    store.commit([Write("topic", key, value)])
    again = reopen(store)
    assert again.load() == {("topic", key): value}
    again.close()


def tells_its_rows_in_pieces(store: MetadataStore, reopen: Reopen) -> None:
    del reopen
    assert list(store.rows_in_pieces(2)) == []
    expected = {(kind, str(key)): bytes([key]) for kind in "ab" for key in range(3)}
    store.commit([Write(kind, key, value) for (kind, key), value in expected.items()])
    pieces = list(store.rows_in_pieces(4))
    assert [len(piece) for piece in pieces] == [4, 2]
    assert {(kind, key): value for piece in pieces for kind, key, value in piece} == expected
    left = store.rows_in_pieces(2)
    next(left)
    store.commit([Write("a", "2", None), Write("b", "2", b"new"), Write("a", "0", None)])
    assert [row for piece in left for row in piece] == [
        ("b", "0", b"\0"),
        ("b", "1", b"\1"),
        ("b", "2", b"new"),
    ]


def has_few_large_rows_in_a_piece(store: MetadataStore, reopen: Reopen) -> None:
    """A hundred rows of grants, which may have two megabytes each, are not in memory at once."""
    del reopen
    size_bytes = ROWS_BYTES // 2
    store.commit([Write("a", str(key), bytes(size_bytes)) for key in range(5)])
    store.commit([Write("b", "0", bytes(3 * ROWS_BYTES)), Write("c", "0", b"")])
    pieces = [[row[:2] for row in piece] for piece in store.rows_in_pieces(100)]
    assert pieces == [
        [("a", "0"), ("a", "1")],
        [("a", "2"), ("a", "3")],
        [("a", "4"), ("b", "0")],
        [("c", "0")],
    ]


SUITE = [
    keeps_what_was_committed,
    the_last_write_of_a_row_wins,
    keeps_any_text_and_bytes,
    tells_its_rows_in_pieces,
    has_few_large_rows_in_a_piece,
]
