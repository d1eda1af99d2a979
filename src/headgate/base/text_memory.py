"""How much memory texts take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PROPERTY_BYTES: Final = 256
"""What a property takes beside its key and value: their objects, and places in two tables."""

_LATIN_1_BYTES, _UTF_16_BYTES, _UCS_4_BYTES = 1, 2, 4


def text_bytes(text: str) -> int:
    """Bytes of a text in memory, without its object. Each character takes as much as its widest
    one, up to 4 bytes. A text that is not ASCII also keeps its UTF-8 once it was encoded to JSON.
    """
    if text.isascii():
        return len(text)
    utf8_size = len(text.encode("utf-8", "surrogatepass"))
    return len(text) * _width(text) + utf8_size


def _width(text: str) -> int:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        is_wide = len(text.encode("utf-16-le", "surrogatepass")) > 2 * len(text)
        return _UCS_4_BYTES if is_wide else _UTF_16_BYTES
    return _LATIN_1_BYTES


def texts_bytes(properties: Mapping[str, str]) -> int:
    """:func:`text_bytes` of all keys and values."""
    return sum(text_bytes(key) + text_bytes(value) for key, value in properties.items())


def properties_bytes(properties: Mapping[str, str]) -> int:
    """What properties take in memory, about."""
    return texts_bytes(properties) + PROPERTY_BYTES * len(properties)
