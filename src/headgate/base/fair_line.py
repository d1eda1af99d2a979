"""A line of work in which owners take turns, so that the many of one hold up no other."""

from __future__ import annotations

from collections import OrderedDict, deque
from contextvars import ContextVar
from typing import Final, Generic, TypeVar

T = TypeVar("T")

WORK_OWNER: Final[ContextVar[str]] = ContextVar("WORK_OWNER", default="")
"""The tenant that the present task works for; empty for the broker, and for all who set none. Tasks
that it starts have the same."""


class FairLine(Generic[T]):
    """What waits, by owner. Each owner's first is next in its turn."""

    __slots__ = ("_by_owner",)

    def __init__(self) -> None:
        self._by_owner: OrderedDict[str, deque[T]] = OrderedDict()
        """The first owner's turn is next. None is without anything that waits."""

    def __len__(self) -> int:
        """How many owners wait."""
        return len(self._by_owner)

    def add(self, owner: str, item: T) -> None:
        """Behind the others of ``owner``. An owner that had none comes behind all others."""
        items = self._by_owner.get(owner)
        if items is None:
            items = self._by_owner[owner] = deque()
        items.append(item)

    def take(self) -> tuple[str, T]:
        """Take the next one, with its owner, whose turn it is again when the others had theirs.

        Raises:
            KeyError: nothing waits.
        """
        owner, items = self.take_all()
        item = items.popleft()
        self.give_back(owner, items)
        return owner, item

    def take_all(self) -> tuple[str, deque[T]]:
        """Take all of the owner whose turn it is, for a caller that gives back what is left.

        Raises:
            KeyError: nothing waits.
        """
        return self._by_owner.popitem(last=False)

    def give_back(self, owner: str, items: deque[T]) -> None:
        """The rest of :meth:`take_all`, before what was added meanwhile."""
        items += self._by_owner.pop(owner, ())
        if items:
            self._by_owner[owner] = items
