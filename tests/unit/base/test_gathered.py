"""Gathered bytes are there once."""

from __future__ import annotations

from headgate.base.gathered import taken


def test_nothing_is_left_beside_the_part() -> None:
    gathered = [b"one", b"", b"two"]
    assert taken(gathered) == b"onetwo"
    assert gathered == []
    assert taken(gathered) == b""
