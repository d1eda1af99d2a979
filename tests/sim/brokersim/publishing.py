"""Publish limits in a story: who sets them, and what they may never let pass (law 3)."""

from __future__ import annotations

import random
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.base.names import parse_topic
from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_S
from headgate.broker.service import Broker
from headgate.engine.parked_send import ParkedAt
from headgate.engine.ports import EntryLog
from headgate.facade.admin_facade import AdminFacade
from headgate.flow.limits.rate_limit import Dimension, RateLimit
from headgate.metadata.policies import PublishRate
from tests.sim.brokersim import adaptive
from tests.sim.brokersim.model import ViolationError

if TYPE_CHECKING:
    from tests.sim.brokersim.story import Story

AMOUNTS = ((-1, 20, 60, 200), (-1, -1, 5_000, 30_000))
"""By dimension."""
SETTINGS = (
    ("maxPublishRatePerTopicInMessages", ("20", "60", "200")),
    ("maxPublishRatePerTopicInBytes", ("5000", "30000")),
    ("brokerPublisherThrottlingMaxMessageRate", ("40", "100", "300")),
    ("brokerPublisherThrottlingMaxByteRate", ("10000", "60000")),
    ("maxPendingPublishRequestsPerConnection", ("0", "3", "20", "1000")),
    ("headgateMaxParkedBytesPerConnection", ("1000", "5000", "8000000")),
    *adaptive.SETTINGS,
)


async def limit_some(story: Story, rng: random.Random) -> None:
    """Set or remove a publish limit of a topic, the namespace or the broker, or a bound."""
    topic = parse_topic(rng.choice(story.topics)).base
    facade = AdminFacade(story.world.broker, story.world.observer)
    catalog, commit = facade.catalog, facade.commit
    place = rng.choice(("setting", "setting", "namespace", "topic", "topic"))
    rate: PublishRate | None = None
    if rng.random() < 0.1:
        rate = PublishRate(unlimited=True)
    elif rng.random() < 0.6:
        rate = PublishRate(*(rng.choice(amounts) for amounts in AMOUNTS))
    name, texts = rng.choice(SETTINGS)
    text = rng.choice(texts) if rng.random() < 0.6 else None
    story.note(f"admin: publish limit of {place} {topic}: {rate}, {name} {text}")

    async def work() -> None:
        if place == "setting":
            await commit(catalog.plan_setting(name, text))
        elif place == "namespace":
            await commit(catalog.plan_namespace_policies(topic.namespace, publish_rate=rate))
        else:
            await commit(catalog.plan_topic_policies(topic, publish_rate=rate))

    await story.world.ask(work())


class _Accepted(NamedTuple):
    """One entry that was staged, or (``number`` -1) limits that were put in force."""

    at_ns: int
    number: int
    """Of the topic."""
    ordinal: int
    amounts: tuple[int, int]
    of_topic: dict[int, RateLimit | None]
    of_broker: RateLimit | None


class PublishWatch:
    """Watches one running broker: each append, and who waits between turns."""

    def __init__(self, broker: Broker, seen: Counter[str]) -> None:
        self._broker = broker
        self._seen = seen
        self._accepted: deque[_Accepted] = deque()
        """Of the last second."""
        effects: Any = broker.engine.effects
        self._stage = effects.append
        effects.append = self._append
        admission: Any = broker.engine.admission
        admission.put_in_force = self._noting(admission.put_in_force)
        admission.set_broker_limit = self._noting(admission.set_broker_limit)
        log: Any = broker.log
        self._fail_batch = log.fail
        log.fail = self._failed

    def _noting(self, change: Any) -> Any:
        """Limits that hold between two appends count for the window, too."""

        def noted(*arguments: Any, **options: Any) -> None:
            change(*arguments, **options)
            self._accepted.append(self._of(-1, -1, (0, 0)))

        return noted

    def _of(self, number: int, ordinal: int, amounts: tuple[int, int]) -> _Accepted:
        engine = self._broker.engine
        limits = {each.log.number: each.publishing.limit for each in engine.by_number.values()}
        return _Accepted(engine.now_ns, number, ordinal, amounts, limits, engine.admission.limit)

    def _append(self, log: EntryLog, message_count: int, log_ms: int, body: bytes) -> int:
        ordinal = int(self._stage(log, message_count, log_ms, body))
        topic = self._broker.engine.by_number[log.number]
        if topic.is_system:
            return ordinal
        accepted, number = self._accepted, topic.log.number
        since_ns = self._broker.engine.now_ns - NS_PER_S
        while accepted and accepted[0].at_ns <= since_ns:
            accepted.popleft()
        limits = [each.of_broker for each in accepted] + [self._broker.engine.admission.limit]
        self._check("the broker", list(accepted), limits)
        limits = [each.of_topic.get(number) for each in accepted] + [topic.publishing.limit]
        mine = [each for each in accepted if each.number == number]
        self._check(str(topic.name), mine, limits)
        accepted.append(self._of(number, ordinal, (message_count, len(body))))
        return ordinal

    def _check(self, what: str, before: list[_Accepted], limits: list[RateLimit | None]) -> None:
        """Rule 3.2: what goes now finds less than the limit in the last second, which so holds the
        limit and one entry at most."""
        for dimension in Dimension:
            amounts = [None if limit is None else limit.amount(dimension) for limit in limits]
            if None in amounts:
                continue
            self._seen[f"publish limit of {dimension.name}"] += 1
            bound = max(amount for amount in amounts if amount is not None)
            total = sum(each.amounts[dimension] for each in before)
            if total >= bound:
                error = f"{what}: {total} {dimension.name} in a second of {bound}, and one more"
                self._broker.loop.fail(ViolationError(error))  # type: ignore[attr-defined]

    def _failed(self, *arguments: Any) -> Any:
        """What was lost was not accepted (rule 3.4)."""
        touched = self._fail_batch(*arguments)
        by_number = self._broker.engine.by_number
        ends = {number: topic.log.staged_end for number, topic in by_number.items()}
        kept = [each for each in self._accepted if each.ordinal < ends.get(each.number, 0)]
        self._accepted = deque(kept)
        return touched

    def _wakes_in_time(self) -> bool:
        """Whether the loop looks again when the first of those who wait may go."""
        broker, due_ns = self._broker, self._broker.engine.admission.gate.next_wake_ns()
        return due_ns is not None and broker._wake is not None and broker._wake_ns <= due_ns

    def check(self) -> list[str]:
        """What is wrong between two turns of the loop."""
        broker, wrong = self._broker, []
        engine = broker.engine
        for topic in engine.topics.values():
            parking = topic.publishing.parking
            for cause in ParkCause if parking else ():
                self._seen[f"parked by {cause.label}"] += parking.waiting(cause).producers > 0
            for producer in topic.producers.values():
                self._seen["not read"] += producer.is_paused
                if (
                    not producer.parked
                    or broker._flush_scheduled_ns is not None
                    or engine.admission.is_busy
                ):
                    continue
                label = f"{topic.name} {producer.name}"
                if producer.parked_at is ParkedAt.GATE:
                    if not engine.admission.is_limited(topic.publishing):
                        wrong.append(f"{label} waits for a limit, and there is none")
                    elif not self._wakes_in_time():
                        wrong.append(f"{label} waits for a limit, and nobody wakes it")
                if producer.parked_at is ParkedAt.CONNECTION and producer.port.has_room:
                    wrong.append(f"{label} waits for answers, and there is room")
        for port in engine.parked._paused:
            if not port.parked_bytes:
                wrong.append("a connection that parks nothing is not read")
        return wrong + adaptive.check(broker, self._seen)
