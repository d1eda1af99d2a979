"""A list is freed item by item while it is walked."""

from __future__ import annotations

import weakref

from headgate.base.drained import drained


class Item:
    """Something that a weak reference can watch."""


def test_in_order_and_nothing_is_left() -> None:
    items = [3, 1, 2]
    assert list(drained(items)) == [3, 1, 2]
    assert items == []


def test_what_was_walked_is_freed_before_the_others_are() -> None:
    items = [Item(), Item(), Item()]
    first, last = weakref.ref(items[0]), weakref.ref(items[2])
    walk = drained(items)
    next(walk)
    assert first() is None
    assert last() is not None
