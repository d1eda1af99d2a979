"""Bytes of terminals as keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.cli.live.keys import decode_keys


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A\x1b[B", ["up", "down"]),
        (b"\x1bOA", ["up"]),
        (b"\x1b[5~\x1b[6~\x1b[1~\x1b[4~", ["page up", "page down", "home", "end"]),
        (b"\x1b", ["escape"]),
        (b"\x1b\x1b[A", ["escape", "up"]),
        (b"\x1b[1;5Cx", ["x"]),  # Ctrl and an arrow: no key here
        (b"\r\n\x7f\x08", ["enter", "enter", "backspace", "backspace"]),
        ("ü日".encode(), ["ü", "日"]),
        (b"a\x00\x07b", ["a", "b"]),
        (b"\xffa", ["a"]),
        (b"", []),
    ],
)
def test_keys(data: bytes, keys: list[str]) -> None:
    assert decode_keys(data) == (keys, b"")


def test_half_a_character_waits_for_the_rest() -> None:
    whole = "日".encode()
    keys, rest = decode_keys(b"a" + whole[:2])
    assert (keys, rest) == (["a"], whole[:2])
    assert decode_keys(rest + whole[2:]) == (["日"], b"")


@given(st.binary(max_size=40))
def test_any_bytes_are_some_keys(data: bytes) -> None:
    keys, rest = decode_keys(data)
    assert len(rest) <= 3
    assert all(key.isprintable() for key in keys)
