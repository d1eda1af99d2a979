"""Work that may be interrupted at its yields, and its run without a pause."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Sliced = Generator[None, None, T]
"""Work that yields wherever it may be interrupted, and returns its result."""


def at_once(work: Sliced[T]) -> T:
    """Run ``work`` without a pause and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
