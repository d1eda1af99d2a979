"""A list is freed item by item while it is walked."""

from __future__ import annotations

import weakref

from headgate.base.drained import drained


def test_what_a_walk_has_passed_is_free() -> None:
    class Item:
        pass

    items = [Item() for _ in range(3)]
    expected, seen = [weakref.ref(item) for item in items], []
    for item in drained(items):
        seen.append(weakref.ref(item))
        assert [each() is None for each in seen[:-1]] == [True] * (len(seen) - 1)
    assert seen == expected
    assert items == []
