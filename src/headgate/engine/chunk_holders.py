"""Which consumer of a Shared subscription gets the chunks of each message.

A client puts the chunks of a message together, so one consumer has to get all of them: the one that
gets the first. A chunk whose consumer is not ready is put aside, and the subscription goes on with
what follows. If very many chunks are aside, it waits for their consumers instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Container
from typing import Final

from headgate.engine.consumer import Consumer

MESSAGES_MAX: Final = 1_000
"""Messages of one subscription whose consumers are known at most. A message of which no more chunks
come, because its producer died, leaves for newer ones."""

ASIDE_MAX: Final = 256
"""Chunks of one subscription that are put aside at most."""


class ChunkHolders:
    """The consumers of chunks, and the chunks that wait for them."""

    __slots__ = ("_aside", "_by_message", "_messages", "aside_count")

    def __init__(self) -> None:
        self._by_message: dict[int, Consumer] = {}
        self._messages: dict[Consumer, dict[int, None]] = {}
        """The messages of each consumer that has some."""
        self._aside: dict[Consumer, deque[int]] = {}
        self.aside_count = 0
        """Chunks that wait for their consumers, with those that were acknowledged meanwhile."""

    def holder_of(self, message: int, consumers: Collection[Consumer]) -> Consumer | None:
        """The consumer of a message's chunks; None if it has none among ``consumers``."""
        holder = self._by_message.get(message)
        return holder if holder is not None and holder in consumers else None

    def assign(self, message: int, consumer: Consumer) -> None:
        """A consumer gets the chunks of a message from now on."""
        by_message = self._by_message
        if message in by_message:
            self._forget(message)
        elif len(by_message) >= MESSAGES_MAX:
            self._forget(next(iter(by_message)))
        by_message[message] = consumer
        self._messages.setdefault(consumer, {})[message] = None

    def _forget(self, message: int) -> None:
        """Nobody is known to get the chunks of a message any more."""
        holder = self._by_message.pop(message)
        messages = self._messages[holder]
        del messages[message]
        if not messages:
            del self._messages[holder]

    def left(self, consumer: Consumer) -> None:
        """A consumer is gone, and is kept in memory no longer: its properties may be large, and
        nobody is charged with them any more."""
        for message in self._messages.pop(consumer, ()):
            del self._by_message[message]

    def put_aside(self, ordinal: int, consumer: Consumer) -> None:
        """Have a chunk wait for its consumer."""
        self._aside.setdefault(consumer, deque()).append(ordinal)
        self.aside_count += 1

    def take(self, consumer: Consumer) -> Collection[int]:
        """The chunks that waited for a consumer, which is ready or gone."""
        found = self._aside.pop(consumer, ())
        self.aside_count -= len(found)
        return found

    def first_aside(self, waiting: Container[int]) -> tuple[int, Consumer] | None:
        """A chunk that waits, and its consumer; None if none does. Those that are not ``waiting``
        were acknowledged meanwhile."""
        for consumer in list(self._aside):
            ordinals = self._aside[consumer]
            while ordinals:
                if ordinals[0] in waiting:
                    return ordinals[0], consumer
                ordinals.popleft()
                self.aside_count -= 1
            del self._aside[consumer]
        return None

    def clear(self) -> None:
        """Forget everything: no consumer holds an entry."""
        self._by_message.clear()
        self._messages.clear()
        self._aside.clear()
        self.aside_count = 0
