"""A counter that keeps no zeros."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

K = TypeVar("K")


class SparseCounter(Counter[K]):
    """A ``Counter`` from which a key leaves when its count becomes 0.

    It takes memory for what is counted now, not for each name that a client has ever used.
    """

    __slots__ = ()

    def __setitem__(self, key: K, count: int) -> None:
        if count:
            super().__setitem__(key, count)
        else:
            self.pop(key, None)
