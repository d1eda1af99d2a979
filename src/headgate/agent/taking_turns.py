"""A bounded number of things to look at, of which owners take turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from headgate.base.largest import Largest

T = TypeVar("T")


def taking_turns(items: Iterable[tuple[str, Any, T]], count: int) -> list[T]:
    """At most ``count`` of many items, each given with its owner and its key: of each owner the one
    with the largest key, the largest of all first, then of each the second one, and so on. So an
    owner with very many takes the place of none of the others."""
    by_owner: dict[str, Largest[tuple[Any, T]]] = {}
    for owner, key, item in items:
        own = by_owner.get(owner)
        if own is None:
            own = by_owner[owner] = Largest(count)
        own.add(key, (key, item))
    turns = Largest[T](count)
    for own in by_owner.values():
        for turn, (key, item) in enumerate(own.items()):
            turns.add((-turn, key), item)
    return turns.items()
