"""A list that is freed item by item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


def drained(items: list[T]) -> Iterator[T]:
    """All of a list that is needed no more, in order. With pauses between them thousands may end
    meanwhile: those are freed one by one, and not together with the list."""
    items.reverse()
    while items:
        yield items.pop()
