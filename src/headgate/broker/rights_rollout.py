"""Closes the producers and consumers that a change of permissions no longer allows.

Those of the topics that a change concerns are asked about again, in slices between which the loop
serves others. A client whose producer or consumer is closed reconnects it, and is refused then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

from headgate.base.drained import drained
from headgate.base.names import tenant_of
from headgate.base.work_units import CLIENT_CLOSED, SUBSCRIPTION_LOOKED_AT
from headgate.broker.authorization import (
    CONSUME,
    PRODUCE,
    AllowAll,
    Authorizer,
    command_refusal,
)
from headgate.broker.connection.consumers import ConnectionConsumers
from headgate.broker.connection.producers import ConnectionProducers
from headgate.broker.policy_rollout import COPIED_MAX
from headgate.broker.work.scheduler import JobClass, Steps, WorkScheduler
from headgate.engine.consumer import Consumer
from headgate.engine.dispatch_shared import GIVE_BACK_ENTRIES
from headgate.engine.engine import Engine
from headgate.engine.exclusive_access import AccessWaiter, ExclusiveAccess
from headgate.engine.producer import Producer
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.metadata.catalog import Change, RowChange
from headgate.metadata.grants import (
    NO_NAMESPACE_GRANTS,
    NamespaceGrants,
    RoleActions,
    SubscriptionGrants,
    TopicGrants,
)
from headgate.metadata.rows import Kind, TenantRow
from headgate.metadata.state import parent_of
from headgate.wire.codes import CommandType

logger = logging.getLogger("headgate.authorization")


class _Walk:
    """The topics of one scope, and who waits until their clients are asked about."""

    __slots__ = ("closed_count", "next", "present", "why")

    def __init__(self, first: asyncio.Future[None]) -> None:
        self.present: asyncio.Future[None] | None = None
        """The end of the present round; None before the first."""
        self.next: asyncio.Future[None] | None = first
        """The end of the next round, if something changed since the present one began."""
        self.closed_count = 0
        self.why = ""
        """Why the first of the clients was closed."""

    def closed(self, what: str, why: str) -> None:
        """A client was closed."""
        self.closed_count += 1
        self.why = self.why or f"{what}, because {why}"


class RightsRollout:
    """Asks the authorizer again about connected producers and consumers.

    Changes of a scope (a tenant, a namespace, a topic) whose walk runs share one more round of it.
    """

    def __init__(
        self,
        engine: Engine,
        authorizer: Callable[[], Authorizer],
        scheduler: WorkScheduler,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._engine = engine
        self._authorizer = authorizer
        self._scheduler = scheduler
        self._loop = loop
        self._walks: dict[tuple[Kind, str], _Walk] = {}

    def apply(self, change: Change) -> None:
        """Ask about the clients that a durable change of the metadata may take a right from."""
        if isinstance(self._authorizer(), AllowAll):
            return
        for row in change.rows:
            scope = _scope_of(row)
            if scope is None:
                continue
            walk = self._walks.get(scope)
            if walk is None:
                self._walks[scope] = _Walk(self._loop.create_future())
                # Beside requests, and the turns of the tenant: else a role could hold up the end of
                # its right, by hundreds of requests about the tenant.
                steps, owner = self._steps(scope), f"{tenant_of(scope[1])} permissions"
                run = self._scheduler.run
                run("putting permissions in force", JobClass.COMMAND, steps, owner)
            elif walk.next is None:
                walk.next = self._loop.create_future()

    async def when_in_force(self, change: Change) -> None:
        """Return when ``change``, which was applied, is in force."""
        scopes = {scope for row in change.rows if (scope := _scope_of(row)) is not None}
        walks = [walk for scope in scopes if (walk := self._walks.get(scope)) is not None]
        for end in [walk.next or walk.present for walk in walks]:
            if end is not None:
                await asyncio.shield(end)  # a client that disconnects ends only its own wait

    def _steps(self, scope: tuple[Kind, str]) -> Steps:
        walk = self._walks[scope]
        while walk.next is not None:
            walk.present, walk.next = walk.next, None
            for topics in self._topics(*scope):
                yield SUBSCRIPTION_LOOKED_AT
                for topic in topics:
                    yield SUBSCRIPTION_LOOKED_AT
                    if topic.is_live:
                        yield from self._ask_about(topic, walk)
            walk.present.set_result(None)
        del self._walks[scope]
        if walk.closed_count:
            logger.info(
                "permissions on %s changed: %d producers and consumers are closed, first %s",
                scope[1],
                walk.closed_count,
                walk.why,
            )

    def _topics(self, kind: Kind, key: str) -> Iterator[list[Topic]]:
        """The loaded topics of a scope, in lists; those that are loaded later have no old
        clients."""
        engine = self._engine
        if kind is Kind.TOPIC_GRANTS:
            own = engine.topics.get(key)
            yield [*engine.by_base.get(key, {}), *([] if own is None else [own])]
            return
        members = engine.by_namespace.get(key, {})
        if kind is Kind.NAMESPACE and len(members) <= COPIED_MAX:
            yield list(members)
            return
        for topics in engine.loaded.walk():
            if kind is Kind.TENANT:
                yield [topic for topic in topics if topic.name.tenant == key]
            else:
                yield [topic for topic in topics if topic in members]

    def _ask_about(self, topic: Topic, walk: _Walk) -> Steps:
        for producer in drained([*topic.producers.values()]):
            yield self._ask_about_producer(topic, producer, walk)
        access = topic.access
        for waiter in drained([] if access is None else access.waiters):
            yield self._ask_about_waiter(topic, access, waiter, walk)
        for subscription in drained([*topic.subscriptions.values()]):
            yield SUBSCRIPTION_LOOKED_AT
            for consumer in drained([*subscription.consumers]):
                yield self._ask_about_consumer(subscription, consumer, walk)

    def _ask_about_producer(self, topic: Topic, producer: Producer, walk: _Walk) -> int:
        port = producer.port
        if producer.closed or not isinstance(port, ConnectionProducers):
            return SUBSCRIPTION_LOOKED_AT  # it belongs to the broker
        decision = self._authorizer().decide(port.identity, PRODUCE, topic.name.full, "")
        if decision.allowed:
            return SUBSCRIPTION_LOOKED_AT
        walk.closed(f"producer {producer.name[:80]!r} of {topic.name}", decision.reason)
        port.close_producer(producer.producer_id)
        topic.remove_producer(producer)
        return CLIENT_CLOSED

    def _ask_about_waiter(
        self, topic: Topic, access: ExclusiveAccess | None, waiter: AccessWaiter, walk: _Walk
    ) -> int:
        """One that waits for exclusive access keeps others from joining the topic."""
        producer, port = waiter.producer, waiter.producer.port
        if not isinstance(port, ConnectionProducers):
            return SUBSCRIPTION_LOOKED_AT
        decision = self._authorizer().decide(port.identity, PRODUCE, topic.name.full, "")
        if decision.allowed or access is None or not access.has_waiting(waiter):
            return SUBSCRIPTION_LOOKED_AT
        walk.closed(f"waiting producer {producer.name[:80]!r} of {topic.name}", decision.reason)
        waiter.refused(command_refusal(CommandType.PRODUCER, topic.name.full, decision))
        return CLIENT_CLOSED

    def _ask_about_consumer(
        self, subscription: Subscription, consumer: Consumer, walk: _Walk
    ) -> int:
        port, topic = consumer.port, subscription.topic.name
        if not isinstance(port, ConnectionConsumers):
            return SUBSCRIPTION_LOOKED_AT
        decision = self._authorizer().decide(port.identity, CONSUME, topic.full, subscription.name)
        if decision.allowed:
            return SUBSCRIPTION_LOOKED_AT
        where = f"subscription {subscription.name} of {topic}"
        walk.closed(f"consumer {consumer.name[:80]!r} of {where}", decision.reason)
        held_count = min(len(consumer.held), GIVE_BACK_ENTRIES)
        return subscription.disconnect_consumer(consumer) + held_count


def _scope_of(row: RowChange) -> tuple[Kind, str] | None:
    """What a changed row takes rights from: the kind of its scope, and its name; None if it takes
    none away."""
    kind, before, after = row.kind, row.before, row.after
    if kind is Kind.TENANT:
        admins = set(after.admin_roles if isinstance(after, TenantRow) else ())
        if isinstance(before, TenantRow) and not admins.issuperset(before.admin_roles):
            return kind, row.key
    elif kind is Kind.SUBSCRIPTION_GRANTS and isinstance(after, SubscriptionGrants):
        was = before.roles if isinstance(before, SubscriptionGrants) else None
        if was is None or not set(was).issubset(after.roles):
            return Kind.NAMESPACE, parent_of(kind, row.key)
    elif kind is Kind.NAMESPACE_GRANTS:
        old = before if isinstance(before, NamespaceGrants) else NO_NAMESPACE_GRANTS
        new = after if isinstance(after, NamespaceGrants) else NO_NAMESPACE_GRANTS
        is_mode_new = old.subscription_auth_mode != new.subscription_auth_mode
        if is_mode_new or _takes_away(old.roles, new.roles):
            return Kind.NAMESPACE, row.key
    elif kind is Kind.TOPIC_GRANTS:
        had, has = (each.roles if isinstance(each, TopicGrants) else {} for each in (before, after))
        if _takes_away(had, has):
            return kind, row.key
    return None


def _takes_away(before: RoleActions, after: RoleActions) -> bool:
    """Whether a role may do less than before."""
    return any(not set(actions).issubset(after.get(role, ())) for role, actions in before.items())
