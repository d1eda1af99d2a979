"""Puts changed policies in force on many topics, in slices between which the loop serves others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from headgate.base.errors import broken
from headgate.broker.slices import Turns
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic

SLICE_UNITS: Final = 256
"""Work of one slice in units of about 4 us: a millisecond."""

TOPIC_UNITS: Final = 12
SUBSCRIPTION_UNITS: Final = 4


class _Walk:
    """Topics whose policies changed, and the future that ends with the last of them."""

    __slots__ = ("done", "find", "topics")

    def __init__(
        self, find: Callable[[], Collection[Topic]], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.find = find
        self.topics: list[Topic] = []
        self.done: asyncio.Future[None] = loop.create_future()


class PolicyRollout:
    """Has the engine resolve the limits and quotas of topics again.

    Few topics are done at once. Many are walked in slices, one walk after the other. A change of a
    scope whose walk has not begun needs no walk of its own, because each topic gets the policies
    that are set when its turn comes. A topic that is loaded meanwhile has them already.
    """

    def __init__(self, engine: Engine, turns: Turns, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._turns = turns
        self._loop = loop
        self._waiting: dict[str, _Walk] = {}
        """Walks that have not begun, by the scope of their topics, in their order."""
        self._walk: _Walk | None = None

    def apply(self, scope: str, find: Callable[[], Collection[Topic]]) -> None:
        """Resolve the policies of the topics that ``find`` returns, all of one scope."""
        topics = find()
        if len(topics) * TOPIC_UNITS <= SLICE_UNITS and sum(map(_units, topics)) <= SLICE_UNITS:
            for topic in topics:
                self._resolve(topic)
        elif scope not in self._waiting:
            if self._walk is None and not self._waiting:
                self._loop.call_soon(self._slice)
            self._waiting[scope] = _Walk(find, self._loop)

    async def when_in_force(self) -> None:
        """Return when every walk that has been asked for until now has ended."""
        last = next(reversed(self._waiting.values()), self._walk)
        if last is not None:
            # A client that disconnects ends only its own wait.
            await asyncio.shield(last.done)

    def _slice(self) -> None:
        self._turns.begin_turn()
        walk, units = self._walk, SLICE_UNITS
        if walk is None:
            walk = self._walk = self._waiting.pop(next(iter(self._waiting)))
            walk.topics = list(walk.find())
            walk.topics.reverse()
        topics = walk.topics
        try:
            while topics and units > 0:
                topic = topics.pop()
                if topic.is_live:
                    self._resolve(topic)
                    units -= _units(topic)
        except Exception as error:
            raise broken("putting policies in force", error) from error
        if not topics:
            self._walk = None
            walk.done.set_result(None)
        if topics or self._waiting:
            self._loop.call_soon(self._slice)

    def _resolve(self, topic: Topic) -> None:
        self._engine.reload_limits(topic)
        self._engine.reload_publish_limit(topic)
        self._engine.reload_quotas(topic)


def _units(topic: Topic) -> int:
    return TOPIC_UNITS + SUBSCRIPTION_UNITS * len(topic.subscriptions)
