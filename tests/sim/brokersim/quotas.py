"""Backlog quotas in a story: who sets them, and what they may never let pass (law 4)."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from headgate.base.names import parse_topic
from headgate.broker.service import Broker
from headgate.engine.eviction import Eviction
from headgate.engine.observer import NoObserver
from headgate.engine.ports import EntryLog
from headgate.engine.quota_check import is_consistent
from headgate.engine.topic import Topic
from headgate.facade.admin_facade import AdminFacade
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType, size_after_eviction
from headgate.metadata.policies import BacklogQuota, QuotaKind
from tests.sim.brokersim.model import Model, ViolationError, just_after

if TYPE_CHECKING:
    from tests.sim.brokersim.story import Story

KINDS: Final[tuple[QuotaKind, ...]] = ("destination_storage", "message_age")


def random_settings(rng: random.Random) -> dict[str, str]:
    """The broker's settings about what waits."""
    return {
        "headgateHoldParkMs": rng.choice(("0", "300", "4000", "20000")),
        "headgateMaxParkedBytesPerConnection": rng.choice(("2000", "8000000")),
        "backlogQuotaCheckIntervalInSeconds": "1",
    }


async def set_some(story: Story, rng: random.Random) -> None:
    """Set or remove a quota of a topic or of the namespace."""
    topic = parse_topic(rng.choice(story.topics)).base
    facade, kind = AdminFacade(story.world.broker, story.world.observer), rng.choice(KINDS)
    quota: BacklogQuota | None = None
    if rng.random() < 0.6:
        policy = rng.choice(list(QuotaPolicy)).value
        size_bytes = rng.choice((0, 1_000, 5_000, 5_000, 20_000, 20_000))
        quota = BacklogQuota(policy, limit_size=size_bytes, limit_time=rng.randint(1, 6))
    on_namespace = rng.random() < 0.3
    place = topic.namespace if on_namespace else topic
    story.note(f"admin: quota {kind} of {place}: {quota}")

    async def work() -> None:
        catalog = facade.catalog
        if on_namespace:
            await facade.commit(catalog.plan_namespace_quota(topic.namespace, kind, quota))
        else:
            present = catalog.topic_policies(topic).backlog_quotas
            quotas = {k: q for k, q in present.items() if k != kind}
            quotas |= {} if quota is None else {kind: quota}
            await facade.commit(catalog.plan_topic_policies(topic, backlog_quotas=quotas))

    await story.world.ask(work())


class QuotaWatch(NoObserver):
    """Watches one running broker: each append, each eviction, and the state between turns."""

    def __init__(self, model: Model, broker: Broker, seen: Counter[str]) -> None:
        self._model = model
        self._broker = broker
        self._seen = seen
        self._loop: Any = broker.loop
        effects: Any = broker.engine.effects
        self._stage = effects.append
        effects.append = self._append
        broker.engine.observer = self

    def _append(self, log: EntryLog, message_count: int, log_ms: int, body: bytes) -> int:
        """What is staged was below the limit the instant before, whatever the policy: so a backlog
        is never passed by more than one entry, unless a limit was lowered or a cursor set back."""
        topic = self._broker.engine.by_number[log.number]
        if not topic.is_system:
            size = self._broker.policies.quotas.of_topic(topic.name).size
            backlog_bytes = _backlog_bytes(topic)
            if size is not None:
                self._seen["append below a limit"] += 1
                is_kept = size.policy.stops_producers or backlog_bytes > 0
                if backlog_bytes >= size.limit and is_kept:
                    self._fail(f"{topic.name}: {backlog_bytes} are owed of {size}, and one more")
            if topic.quota is not None and topic.quota.exceeded is not None:
                self._fail(f"{topic.name}: stored although {topic.quota.why(topic.quota.exceeded)}")
        return int(self._stage(log, message_count, log_ms, body))

    def quota_state_changed(self, topic: Topic, quota: Quota, exceeded: bool) -> None:
        self._seen[f"{quota.type.label} quota {'exceeded' if exceeded else 'released'}"] += 1

    def evicted(self, topic: Topic, eviction: Eviction) -> None:
        quota = eviction.quota
        self._seen[f"evicted by {quota.type.label}"] += 1
        if quota.policy is not QuotaPolicy.EVICTION:
            self._fail(f"{topic.name}: {quota} evicts")
        for taken in eviction.losses:
            subscription = topic.subscriptions.get(taken.subscription)
            if subscription is None:
                continue  # it was deleted while others were moved
            if not subscription.is_durable:
                self._fail(f"{topic.name}: the reader {subscription.name} was evicted")
            cursor = self._model.cursor(topic.name.full, subscription.name)
            staged_bytes = topic.publishing.staged_bytes - topic.log.bytes_before(topic.log.end)
            left = subscription.backlog_bytes
            mark = size_after_eviction(quota.limit)
            beyond_bytes = left + staged_bytes - eviction.arrived_bytes - mark
            # One that somebody moves back meanwhile is left to the next eviction.
            if quota.type is QuotaType.SIZE and left and beyond_bytes > 0 and not cursor.moves:
                self._fail(f"{topic.name} {taken}: {left} are left of {quota}")
            place = topic.log.position(subscription.acks.mark_delete)
            cursor.may_before = max(cursor.may_before, just_after(place))

    def check(self) -> list[str]:
        """What is wrong between two turns of the loop."""
        keeper = self._broker.engine.quotas
        wrong = []
        if keeper.defects_count:
            wrong.append(f"the check found {keeper.defects_count} defects")
        parked: Counter[Any] = Counter()
        for topic in self._broker.engine.topics.values():
            waiting = [p for p in topic.producers.values() if p.parked]
            for producer in waiting:
                size = sum(len(send.body) for send in producer.parked or ())
                beside = self._broker.engine.limits.parked_send_bytes
                parked[producer.port] += size + beside * len(producer.parked or ())
                if size != producer.parked_bytes or producer.ending:
                    wrong.append(f"{topic.name} {producer.name}: {producer.parked_bytes} of {size}")
            self._seen["parked"] += bool(waiting)
            if any(producer.parked_at is None for producer in waiting):
                wrong.append(f"{topic.name}: somebody waits nowhere")
            quota = topic.quota
            if quota is None or quota.is_dirty or self._broker._flush_scheduled_ns is not None:
                continue
            if topic.publishing.visible < topic.log.end:
                continue  # it is evaluated behind these receipts
            # Else what is read of the index now has it evaluated.
            is_known = not any(managed.index._waiting for managed in self._broker.logs)
            if quota.is_active and is_known and not is_consistent(quota):
                wrong.append(f"{topic.name}: over {quota.exceeded}, {quota.backlog_bytes()} bytes")
            if (
                topic.publishing.parking
                and topic.publishing.parking.quota_queue
                and quota.exceeded is None
            ):
                wrong.append(f"{topic.name}: SENDs wait although no quota is exceeded")
        parked_bytes = self._broker.engine.parked.bytes
        if parked_bytes != sum(parked.values()):
            wrong.append(f"{parked_bytes} wait, {sum(parked.values())} are there")
        for connection in self._broker.connections:
            port = connection.producer_port
            if port.parked_bytes != parked[port]:
                wrong.append(f"{connection.address}: {port.parked_bytes} wait")
        return wrong

    def _fail(self, text: str) -> None:
        self._loop.fail(ViolationError(text))


def _backlog_bytes(topic: Topic) -> int:
    """Of the slowest stored subscription, with what is not durable yet."""
    done = [s.done_bytes for s in topic.subscriptions.values() if s.is_durable]
    return topic.publishing.staged_bytes - min(done, default=topic.publishing.staged_bytes)
