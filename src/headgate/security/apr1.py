"""Apache's MD5 scheme for passwords, ``$apr1$`` (Apache HTTP Server, "Password Formats").

It is weak by today's measure and is here because Pulsar reads such files; bcrypt is the better
choice.
"""

from __future__ import annotations

from hashlib import md5
from typing import Final

PREFIX: Final = "$apr1$"
ROUNDS: Final = 1_000
SALT_CHARACTERS_MAX: Final = 8

_ALPHABET: Final = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TRIPLES: Final = ((0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5))
"""Bytes of the digest that make four characters together; byte 11 makes the last two."""


def apr1(password: bytes, salt: str) -> str:
    """The text that a password file has for ``password``."""
    short = salt[:SALT_CHARACTERS_MAX]
    salted = short.encode()
    inner = md5(password + salted + password, usedforsecurity=False).digest()
    first = password + PREFIX.encode() + salted
    first += (inner * (len(password) // len(inner) + 1))[: len(password)]
    bits = len(password)
    while bits:
        first += b"\0" if bits & 1 else password[:1]
        bits >>= 1
    digest = md5(first, usedforsecurity=False).digest()
    for round_ in range(ROUNDS):
        mixed = password if round_ & 1 else digest
        if round_ % 3:
            mixed += salted
        if round_ % 7:
            mixed += password
        mixed += digest if round_ & 1 else password
        digest = md5(mixed, usedforsecurity=False).digest()
    return f"{PREFIX}{short}${_text(digest)}"


def _text(digest: bytes) -> str:
    characters = [
        _characters(digest[high] << 16 | digest[middle] << 8 | digest[low], 4)
        for high, middle, low in _TRIPLES
    ]
    return "".join((*characters, _characters(digest[11], 2)))


def _characters(value: int, count: int) -> str:
    return "".join(_ALPHABET[value >> 6 * at & 63] for at in range(count))
