"""Queues in which owners take turns, so that the many items of one hold up that owner alone."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items of several owners. Each owner has one item in its turn, the one that waits longest."""

    __slots__ = ("_by_owner", "_count")

    def __init__(self) -> None:
        self._by_owner: OrderedDict[str, deque[T]] = OrderedDict()
        """The first one's turn is next."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def owners_count(self) -> int:
        """How many owners have items."""
        return len(self._by_owner)

    def count_of(self, owner: str) -> int:
        """How many items an owner has."""
        return len(self._by_owner.get(owner, ()))

    def add(self, owner: str, item: T) -> None:
        """Add an item behind the others of its owner."""
        items = self._by_owner.get(owner)
        if items is None:
            items = self._by_owner[owner] = deque()
        items.append(item)
        self._count += 1

    def take(self) -> T:
        """Remove and return the item whose turn it is. There must be one."""
        owner, items = next(iter(self._by_owner.items()))
        item = items.popleft()
        self._count -= 1
        if items:
            self._by_owner.move_to_end(owner)
        else:
            del self._by_owner[owner]
        return item

    def put_back(self, owner: str, item: T) -> None:
        """Put an item, which was taken, in front of the others of its owner, for the next turn."""
        items = self._by_owner.get(owner)
        if items is None:
            items = self._by_owner[owner] = deque()
        items.appendleft(item)
        self._count += 1

    def owner_among(self, is_meant: Callable[[str], bool]) -> str | None:
        """The first owner in turn that is meant; None if there is none."""
        return next(filter(is_meant, self._by_owner), None)

    def first_of(self, owner: str) -> T | None:
        """The item of an owner that waits longest; None if there is none."""
        items = self._by_owner.get(owner)
        return items[0] if items else None

    def take_of(self, owner: str) -> T:
        """As :meth:`take`, out of turn, of an owner that has an item."""
        self._by_owner.move_to_end(owner, last=False)
        return self.take()

    def drop(self, is_dropped: Callable[[T], bool]) -> None:
        """Drop some of the items. The turns of the others stay."""
        for owner, items in list(self._by_owner.items()):
            kept = deque(item for item in items if not is_dropped(item))
            self._count -= len(items) - len(kept)
            if kept:
                self._by_owner[owner] = kept
            else:
                del self._by_owner[owner]

    def clear(self) -> None:
        """Drop them all."""
        self._by_owner.clear()
        self._count = 0


class FairSet(Generic[T]):
    """As :class:`FairQueue`, of items that wait once each. They leave in any order at the same
    cost: thousands do so at once when a connection ends."""

    __slots__ = ("_by_owner",)

    def __init__(self) -> None:
        self._by_owner: OrderedDict[str, OrderedDict[T, None]] = OrderedDict()
        """The first one's turn is next."""

    def __bool__(self) -> bool:
        return bool(self._by_owner)

    @property
    def next_owner(self) -> str:
        """Whose turn it is. There must be an item."""
        return next(iter(self._by_owner))

    def add(self, owner: str, item: T) -> None:
        """Add an item behind the others of its owner, unless it waits already."""
        items = self._by_owner.get(owner)
        if items is None:
            items = self._by_owner[owner] = OrderedDict()
        items[item] = None

    def discard(self, owner: str, item: T) -> None:
        """An item of ``owner``, which may have had its turn, waits no more."""
        items = self._by_owner.get(owner)
        if items is not None:
            items.pop(item, None)
            if not items:
                del self._by_owner[owner]

    def owner_among(self, is_meant: Callable[[str], bool]) -> str | None:
        """The first owner in turn that is meant; None if there is none."""
        return next(filter(is_meant, self._by_owner), None)

    def take(self) -> T:
        """Remove and return the item whose turn it is. There must be one."""
        return self.take_of(self.next_owner)

    def take_of(self, owner: str) -> T:
        """As :meth:`take`, out of turn, of an owner that has an item."""
        items = self._by_owner[owner]
        item, _ = items.popitem(last=False)
        if items:
            self._by_owner.move_to_end(owner)
        else:
            del self._by_owner[owner]
        return item


class NestedFairQueue(Generic[T]):
    """Items of several owners, which belong to groups. Groups take turns, and in each its
    owners."""

    __slots__ = ("_by_group", "_count")

    def __init__(self) -> None:
        self._by_group: OrderedDict[str, FairQueue[T]] = OrderedDict()
        """The first one's turn is next."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def next_group(self) -> str:
        """Whose turn it is. There must be an item."""
        return next(iter(self._by_group))

    @property
    def group_count(self) -> int:
        """How many groups have an item."""
        return len(self._by_group)

    def count_of(self, group: str) -> int:
        """How many items a group has."""
        items = self._by_group.get(group)
        return 0 if items is None else len(items)

    def add(self, group: str, owner: str, item: T) -> None:
        """Add an item behind the others of its owner, who belongs to one group."""
        items = self._by_group.get(group)
        if items is None:
            items = self._by_group[group] = FairQueue()
        items.add(owner, item)
        self._count += 1

    def take(self) -> T:
        """Remove and return the item whose turn it is. There must be one."""
        group, items = next(iter(self._by_group.items()))
        item = items.take()
        self._count -= 1
        if items:
            self._by_group.move_to_end(group)
        else:
            del self._by_group[group]
        return item

    def drop(self, is_dropped: Callable[[T], bool]) -> None:
        """Drop some of the items. The turns of the others stay."""
        for group, items in list(self._by_group.items()):
            self._count -= len(items)
            items.drop(is_dropped)
            self._count += len(items)
            if not items:
                del self._by_group[group]

    def clear(self) -> None:
        """Drop them all."""
        self._by_group.clear()
        self._count = 0


class NestedFairSet(Generic[T]):
    """As :class:`NestedFairQueue`, of items that wait once each, as those of a :class:`FairSet`."""

    __slots__ = ("_by_group",)

    def __init__(self) -> None:
        self._by_group: OrderedDict[str, FairSet[T]] = OrderedDict()
        """The first one's turn is next."""

    def __bool__(self) -> bool:
        return bool(self._by_group)

    def add(self, group: str, owner: str, item: T) -> None:
        """Add an item behind the others of its owner, unless it waits already."""
        items = self._by_group.get(group)
        if items is None:
            items = self._by_group[group] = FairSet()
        items.add(owner, item)

    def discard(self, group: str, owner: str, item: T) -> None:
        """An item, which may have had its turn, waits no more."""
        items = self._by_group.get(group)
        if items is not None:
            items.discard(owner, item)
            if not items:
                del self._by_group[group]

    def take(self) -> tuple[str, T]:
        """Remove and return the item whose turn it is, with its owner. There must be one."""
        group, items = next(iter(self._by_group.items()))
        owner = items.next_owner
        item = items.take_of(owner)
        if items:
            self._by_group.move_to_end(group)
        else:
            del self._by_group[group]
        return owner, item
