"""Topics as a history keeps them, for tests of what is reported of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headgate.agent.inferred_topic import InferredTopic
from headgate.agent.looks import ConsumerLook, LimitsLook
from headgate.explain.delivery import Instant
from headgate.flow.limits.precedence import NO_LIMIT, EffectiveLimit
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.agent.looks import TOPIC, S, backlog, look

READY = ConsumerLook("c-0", "/10.0.0.1:1", "monday", 1_000, 0, False, 0, 1.0)
NOW = Instant(20 * S, 1_763_719_260_000)


def known_topic(
    name: str = TOPIC,
    *,
    published_per_s: int = 100,
    sent_per_s: int = 60,
    events: tuple[int, ...] = (0, 0, 1, 0, 0, 0),
    limits: LimitsLook | None = None,
    **fields: Any,
) -> InferredTopic:
    """A topic after looks at each second from 10 to 20. ``events`` are of each second."""
    topic = InferredTopic(name, "b1:8080")
    if limits is not None:
        topic.note_limits(limits)
    for second in range(10, 21):
        sent = sent_per_s * second
        subscription = backlog(
            backlog=(published_per_s - sent_per_s) * second, sent=sent, sent_bytes=10 * sent,
            events=tuple(second * each for each in events), consumers=(replace(READY, sent=sent),),
            last_acked_ms=second, mark_delete_moved_ms=second,
        )  # fmt: skip
        published = published_per_s * second
        topic.note_look(
            look(
                second, subscription, topic=name, published=published,
                published_bytes=10 * published, **fields,
            )
        )  # fmt: skip
    return topic


def limits_of(
    topic: str = TOPIC,
    *,
    dispatch: EffectiveLimit = NO_LIMIT,
    subscription: EffectiveLimit = NO_LIMIT,
    broker: EffectiveLimit = NO_LIMIT,
    publish: EffectiveLimit = NO_LIMIT,
) -> LimitsLook:
    """Limits that were read."""
    return LimitsLook(topic, 10 * S, (subscription, dispatch, broker), {}, publish, ())


def per_s(messages: int, *, relative: bool = False) -> EffectiveLimit:
    """A limit that a policy of the topic sets."""
    return EffectiveLimit(RateLimit(messages, None, relative=relative), "topic policy")
