"""The topics that a sweep looks at when their time comes."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.base.lazy_min_heap import LazyMinHeap
from headgate.engine.topic import Topic


class DueTopics:
    """Topics, each with the time of the log of the next look at it."""

    def __init__(self) -> None:
        self._due_ms: dict[Topic, int] = {}
        self._heap = LazyMinHeap(self._due_ms.__getitem__, ())

    def set(self, topic: Topic, due_ms: int) -> None:
        """Look at a topic at ``due_ms``, instead of any other time."""
        self._due_ms[topic] = due_ms
        self._heap.changed(topic)

    def due_ms(self, topic: Topic) -> int | None:
        """When to look at a topic; None if it waits for no time."""
        return self._due_ms.get(topic)

    def discard(self, topic: Topic) -> None:
        """Look at a topic at no time."""
        self._due_ms.pop(topic, None)
        self._heap.discard(topic)

    def take(self, log_ms: int) -> Iterator[Topic]:
        """The topics that are due at ``log_ms``, each removed; those first that wait longest."""
        while (topic := self._heap.top()) is not None and self._due_ms[topic] <= log_ms:
            self.discard(topic)
            yield topic
