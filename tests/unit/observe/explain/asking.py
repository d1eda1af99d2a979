"""Asks a virtual broker for reports, as REST does."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from headgate.base.names import parse_topic
from headgate.base.sliced import at_once
from headgate.base.units import NS_PER_S
from headgate.engine.subscription import Subscription
from headgate.flow.account.verdict import Verdict
from headgate.observe.explain.diagnosis import SubscriptionDiagnosis, diagnose_subscription
from headgate.observe.explain.window import part_of
from tests.unit.broker.virtual import VirtualBroker

FAST = 1e6
S = NS_PER_S


def name(local: str) -> str:
    """A topic of the tests, by its local name."""
    return f"persistent://acme/shop/{local}"


def top(broker: VirtualBroker, count: int = 10) -> dict[str, Any]:
    """The report on the largest backlogs."""
    answer = asyncio.run(broker.observer.explain_top(count))
    json.dumps(answer)
    return answer


def topic_answer(broker: VirtualBroker, local: str, **options: Any) -> dict[str, Any]:
    """The report on a topic."""
    answer = asyncio.run(broker.observer.explain_topic(parse_topic(name(local)), **options))
    json.dumps(answer)
    return answer


def partitioned(broker: VirtualBroker, local: str, counts: list[int]) -> None:
    """A topic of as many partitions, with a backlog of so many messages in each."""
    broker.registry.partitioned[name(local)] = len(counts)
    for i, count in enumerate(counts):
        part = broker.topic(name(f"{local}-partition-{i}"))
        broker.subscription(part, "s")
        broker.publish(part, count)


def judge(broker: VirtualBroker, *parts: Subscription) -> SubscriptionDiagnosis:
    """The judgement of a subscription, given as its parts."""
    known = [part_of(broker.observer.history, part) for part in parts]
    return at_once(diagnose_subscription(broker.current_dispatch_limits, known))


def verdict(broker: VirtualBroker, *parts: Subscription) -> Verdict:
    """The verdict on it, which is not settling any more."""
    found = judge(broker, *parts)
    assert found.diagnosis.settled
    return found.diagnosis.judgement.verdict


def restarted(*, limit: int = 0, back_s: float = 3.0) -> tuple[VirtualBroker, Subscription]:
    """A backlog of four minutes to which a broker comes; its consumer comes back after a while."""
    broker = VirtualBroker()
    topic = broker.topic("t", 60)
    broker.publish(topic, 50_000)
    broker.run(240)
    subscription = broker.subscription(topic, limit=limit)
    subscription.reset(0)
    broker.run(back_s)
    if limit:
        broker.client(subscription, FAST)
    return broker, subscription
