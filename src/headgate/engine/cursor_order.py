"""Which cursors of a topic are furthest behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Generic, Protocol, TypeVar

from headgate.base.ack_set import AckSet
from headgate.base.lazy_min_heap import LazyMinHeap

SCANNED_MAX: Final = 16
"""With more subscriptions than this, heaps find the slowest and the oldest."""


class OrderedCursor(Protocol):
    """The part of a subscription that the order needs."""

    acks: AckSet

    @property
    def is_durable(self) -> bool:
        """Whether its cursor is stored; a reader's is not."""


C = TypeVar("C", bound=OrderedCursor)


class CursorOrder(Generic[C]):
    """Finds the durable subscription and the reader with the oldest cursor.

    With few subscriptions it looks at each. With many it keeps a heap of each kind: a cursor that
    moves forward costs nothing, and the next look brings up to date only what has moved since.
    """

    __slots__ = ("_durable", "_readers", "_subscriptions")

    def __init__(self, subscriptions: Mapping[str, C]) -> None:
        """``subscriptions`` are those of the topic, which change later."""
        self._subscriptions = subscriptions
        self._durable: LazyMinHeap[C] | None = None
        self._readers: LazyMinHeap[C] | None = None

    def changed(self, subscription: C) -> None:
        """A subscription is new, or its cursor moved back."""
        if self._durable is not None and self._readers is not None:
            (self._durable if subscription.is_durable else self._readers).changed(subscription)
        elif len(self._subscriptions) > SCANNED_MAX:
            self._durable = LazyMinHeap(_mark_delete, self._scanned(durable=True))
            self._readers = LazyMinHeap(_mark_delete, self._scanned(durable=False))

    def removed(self, subscription: C) -> None:
        """A subscription was removed."""
        for heap in (self._durable, self._readers):
            if heap is not None:
                heap.discard(subscription)

    def settle(self, count_max: int) -> bool:
        """Bring up to ``count_max`` cursors of each kind up to date that have moved since the last
        look; returns whether that was all that the next look needs."""
        heaps = (self._durable, self._readers)
        return all(heap is None or heap.settle(count_max) for heap in heaps)

    def oldest_durable(self) -> C | None:
        """The durable subscription that is furthest behind; None without any."""
        if self._durable is not None:
            return self._durable.top()
        return min(self._scanned(durable=True), key=_mark_delete, default=None)

    def oldest_reader(self) -> C | None:
        """The reader that is furthest behind; None without any."""
        if self._readers is not None:
            return self._readers.top()
        return min(self._scanned(durable=False), key=_mark_delete, default=None)

    def before(self, ordinal: int) -> Iterator[C]:
        """The subscriptions whose cursor is before ``ordinal``. The caller moves each one to it,
        before it asks for the next."""
        for oldest in (self.oldest_durable, self.oldest_reader):
            while (subscription := oldest()) is not None:
                if _mark_delete(subscription) + 1 >= ordinal:
                    break
                yield subscription

    def _scanned(self, *, durable: bool) -> list[C]:
        return [each for each in self._subscriptions.values() if each.is_durable is durable]


def _mark_delete(subscription: OrderedCursor) -> int:
    return subscription.acks.mark_delete
