"""Names of the keys that a terminal sends as bytes."""

from __future__ import annotations

import re
from typing import Final

_SEQUENCES: Final = {
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end",
    "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
    "[1~": "home", "[4~": "end", "[7~": "home", "[8~": "end", "[5~": "page up", "[6~": "page down",
}  # fmt: skip
_CONTROLS: Final = {
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x03": "interrupt",
}  # fmt: skip
_ESCAPE: Final = "\x1b"
_SEQUENCE: Final = re.compile(r"\[[0-?]*[ -/]*[@-~]|O[@-~]")
"""What a terminal sends after ESC for one key (ECMA-48, control sequences)."""


def decode_keys(data: bytes) -> tuple[list[str], bytes]:
    """The keys in what was read, and the bytes of a character that is not complete yet.

    A character is its own name; others are ``up``, ``page down``, ``escape`` and so on. A sequence
    of a key that has no name here is left out. A terminal sends a sequence in one piece, so an ESC
    at the end is the key.
    """
    text, rest = _decoded(data)
    found: list[str] = []
    at = 0
    while at < len(text):
        one = text[at]
        at += 1
        if one == _ESCAPE:
            sequence = _SEQUENCE.match(text, at)
            if sequence is None:
                found.append("escape")
                continue
            at = sequence.end()
            if name := _SEQUENCES.get(sequence[0]):
                found.append(name)
        elif one in _CONTROLS:
            found.append(_CONTROLS[one])
        elif one.isprintable():
            found.append(one)
    return found, rest


def _decoded(data: bytes) -> tuple[str, bytes]:
    """UTF-8 as far as it goes; what can be no character is left out."""
    for cut in range(min(3, len(data)) + 1):
        whole = data[: len(data) - cut]
        try:
            return whole.decode(), data[len(whole) :]
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                break
    return data.decode(errors="ignore"), b""
