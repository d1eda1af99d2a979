"""What every metadata store must do; a test file per store runs these."""

from __future__ import annotations

from collections.abc import Callable

from headgate.metadata.store import MetadataStore, Write

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


SUITE = [keeps_what_was_committed, the_last_write_of_a_row_wins, keeps_any_text_and_bytes]
