"""Puts changed policies in force on many topics, in slices between which the loop serves others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Flag, auto
from typing import Final

from headgate.base.names import tenant_of
from headgate.base.work_units import (
    CLIENT_CLOSED,
    PRODUCER_RESOLVED,
    SLICE_UNITS,
    SUBSCRIPTION_LOOKED_AT,
    SUBSCRIPTION_RESOLVED,
    TOPIC_LIMIT_RESOLVED,
    TOPIC_RESOLVED,
)
from headgate.broker.work.scheduler import JobClass, Steps, WorkScheduler
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic

COPIED_MAX: Final = 1_000
"""Topics that are copied at once: 0.1 ms."""


class PolicyKinds(Flag):
    """What a change of policies may concern on a topic."""

    DISPATCH = auto()
    """Its dispatch limit and those of its subscriptions."""
    PUBLISH = auto()
    """Its publish limit."""
    OTHERS = auto()
    """Its backlog quotas, retention, delayed delivery, message deduplication, limits on
    unacknowledged messages, and what expires."""
    ALL = DISPATCH | PUBLISH | OTHERS


class _Walk:
    """The topics of one scope, and who waits for their policies."""

    __slots__ = ("find", "kinds", "next", "present")

    def __init__(self, find: Callable[[], Collection[Topic]], first: asyncio.Future[None]) -> None:
        self.find = find
        self.kinds = PolicyKinds(0)
        """What the next round resolves."""
        self.present: asyncio.Future[None] | None = None
        """The end of the present round; None before the first."""
        self.next: asyncio.Future[None] | None = first
        """The end of the next round, if something changed since the present one began."""


class PolicyRollout:
    """Has the engine resolve the limits and quotas of topics again.

    Few topics are done at once, many in slices. Changes of a scope whose walk runs share one more
    round of it, because each topic gets the policies that are set when its turn comes. A topic that
    is loaded meanwhile has them already.
    """

    def __init__(
        self, engine: Engine, scheduler: WorkScheduler, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._engine = engine
        self._scheduler = scheduler
        self._loop = loop
        self._walks: dict[str, _Walk] = {}

    def apply(
        self,
        scope: str,
        find: Callable[[], Collection[Topic]],
        kinds: PolicyKinds = PolicyKinds.ALL,
    ) -> None:
        """Resolve the policies of these ``kinds`` of the topics that ``find`` returns, all of one
        scope."""
        topics = find()
        if len(topics) * TOPIC_RESOLVED <= SLICE_UNITS and sum(map(_units, topics)) <= SLICE_UNITS:
            for topic in topics:
                for _ in self._resolve(topic, kinds):
                    pass
            return
        walk = self._walks.get(scope)
        if walk is None:
            walk = self._walks[scope] = _Walk(find, self._loop.create_future())
            # Beside the turns of the tenant: else a role could hold up a limit of its own, by
            # hundreds of requests about the tenant.
            steps, owner = self._steps(scope), f"{tenant_of(scope)} policies"
            self._scheduler.run("putting policies in force", JobClass.ADMIN, steps, owner)
        elif walk.next is None:
            walk.next = self._loop.create_future()
        walk.kinds |= kinds

    async def when_in_force(self, scopes: Iterable[str]) -> None:
        """Return when everything that was applied to these scopes until now is in force. Those of
        other tenants may go on, one after the other without an end."""
        walks = [walk for scope in scopes if (walk := self._walks.get(scope)) is not None]
        for end in [walk.next or walk.present for walk in walks]:
            if end is not None:
                await asyncio.shield(end)  # a client that disconnects ends only its own wait

    def _steps(self, scope: str) -> Steps:
        walk = self._walks[scope]
        while walk.next is not None:
            walk.present, walk.next = walk.next, None
            kinds, walk.kinds = walk.kinds, PolicyKinds(0)
            for topic in self._members(walk.find()):
                if topic.is_live:
                    yield from self._resolve(topic, kinds)
            walk.present.set_result(None)
        del self._walks[scope]

    def _members(self, topics: Collection[Topic]) -> Iterator[Topic]:
        """``topics`` as they are now, in chunks: a copy of 100,000 would hold the loop."""
        if len(topics) <= COPIED_MAX:
            yield from list(topics)
            return
        for loaded in self._engine.loaded.walk():
            yield from [topic for topic in loaded if topic in topics]

    def _resolve(self, topic: Topic, kinds: PolicyKinds) -> Steps:
        if PolicyKinds.PUBLISH in kinds:
            for _ in self._engine.publish_limit_in_steps(topic):
                yield PRODUCER_RESOLVED
            if not topic.is_live:
                return
        if PolicyKinds.OTHERS in kinds:
            for count in self._engine.quotas_in_steps(topic):
                yield count * SUBSCRIPTION_LOOKED_AT
            if not topic.is_live:
                return
            for _ in self._engine.send_rules_in_steps(topic):
                yield CLIENT_CLOSED
            if not topic.is_live:
                return  # its log may be that of a topic that was loaded since
            self._engine.reload_deduplication(topic)
            self._engine.reload_delayed_delivery(topic)
            for count in self._engine.policies_in_steps(topic):
                yield count * SUBSCRIPTION_LOOKED_AT
        yield TOPIC_RESOLVED if kinds is PolicyKinds.ALL else TOPIC_LIMIT_RESOLVED
        if PolicyKinds.DISPATCH in kinds:
            for _ in self._engine.limits_in_steps(topic):
                yield SUBSCRIPTION_RESOLVED // 2


def _units(topic: Topic) -> int:
    subscriptions = SUBSCRIPTION_RESOLVED * len(topic.subscriptions)
    return TOPIC_RESOLVED + subscriptions + PRODUCER_RESOLVED * len(topic.producers)
