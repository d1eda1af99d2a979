"""Makes the limits in force of what Pulsar's admin API answers about policies and settings.

Pulsar's ``applied=true`` says what holds, and not where it is set. So the agent reads each place
and applies the same order as a broker (:func:`headgate.flow.limits.precedence.effective_limit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import Struct

from headgate.agent.looks import LimitsLook
from headgate.agent.reading import decoded
from headgate.base.units import INT64_MAX
from headgate.flow.limits.precedence import (
    DISPATCH_KEYS,
    PUBLISH_KEYS,
    EffectiveLimit,
    RateKeys,
    RatePolicy,
    effective_limit,
)
from headgate.flow.limits.rate_limit import Level

UNKNOWN_TOPIC: Final = "the topic's policies"
UNKNOWN_NAMESPACE: Final = "the namespace's policies (needs the tenant's admin)"
UNKNOWN_BROKER: Final = "the broker's settings (needs superuser)"
_RELATIVE_KEY: Final = "dispatchThrottlingRateRelativeToPublishRate"


@dataclass(frozen=True, slots=True)
class LimitAnswers:
    """The bodies that the admin API answered; None where it refused or failed to. An empty body, as
    Pulsar answers for what is not set, is an answer."""

    dispatch_rate: bytes | None = None
    """``.../{topic}/dispatchRate``; this and the next three without ``applied``."""
    subscription_dispatch_rate: bytes | None = None
    """``.../{topic}/subscriptionDispatchRate``."""
    publish_rate: bytes | None = None
    """``.../{topic}/publishRate``."""
    by_subscription: Mapping[str, bytes] = field(default_factory=dict)
    """``.../{topic}/{subscription}/dispatchRate``."""
    namespace: bytes | None = None
    """``namespaces/{namespace}``: all of its policies."""
    settings: bytes | None = None
    """``brokers/configuration/runtime``."""


class _Rate(Struct, rename="camel"):
    """A dispatch rate or a publish rate."""

    dispatch_throttling_rate_in_msg: Any = None
    dispatch_throttling_rate_in_byte: Any = None
    relative_to_publish_rate: Any = None
    rate_period_in_second: Any = None
    publish_throttling_rate_in_msg: Any = None
    publish_throttling_rate_in_byte: Any = None


class _Namespace(Struct, rename="camel"):
    """Rates by cluster; a namespace that serves one cluster has one."""

    topic_dispatch_rate: dict[str, _Rate] | None = None
    subscription_dispatch_rate: dict[str, _Rate] | None = None
    publish_max_message_rate: dict[str, _Rate] | None = None


_RATE = msgspec.json.Decoder(_Rate | None)
_NAMESPACE = msgspec.json.Decoder(_Namespace | None)
_SETTINGS = msgspec.json.Decoder(dict[str, Any])


def limits_look(topic: str, at_ns: int, answers: LimitAnswers, *, cluster: str = "") -> LimitsLook:
    """The limits in force for a topic or partition, with where each is set.

    ``cluster`` is the name by which namespace policies list rates; empty for the only one.

    Raises:
        ReadingError: an answer is not a policy or the settings.
    """
    settings = {} if answers.settings is None else broker_settings(answers.settings)
    namespace = _namespace(answers.namespace, topic)
    name = "/".join(topic.partition("://")[2].split("/")[:2])

    def limit(
        level: Level,
        policy: bytes | None = None,
        rates: dict[str, _Rate] | None = None,
        own: RatePolicy | None = None,
    ) -> EffectiveLimit:
        messages, size = _of_broker(settings, DISPATCH_KEYS[level])
        is_relative = str(settings.get(_RELATIVE_KEY)).lower() == "true"
        return effective_limit(
            DISPATCH_KEYS[level],
            subscription_policy=own,
            topic_policy=_rate(policy, topic),
            namespace_policy=_of_cluster(rates, cluster),
            namespace=name,
            broker_messages=messages,
            broker_bytes=size,
            broker_relative=is_relative and level is not Level.BROKER,
        )

    of_subscriptions = answers.subscription_dispatch_rate, namespace.subscription_dispatch_rate
    publish_messages, publish_bytes = _of_broker(settings, PUBLISH_KEYS[Level.TOPIC])
    return LimitsLook(
        topic=topic,
        at_ns=at_ns,
        dispatch=(
            limit(Level.SUBSCRIPTION, *of_subscriptions),
            limit(Level.TOPIC, answers.dispatch_rate, namespace.topic_dispatch_rate),
            limit(Level.BROKER),
        ),
        by_subscription={
            subscription: limit(Level.SUBSCRIPTION, *of_subscriptions, own)
            for subscription, raw in answers.by_subscription.items()
            if (own := _rate(raw, topic)) is not None and not own.says_nothing()
        },
        publish=effective_limit(
            PUBLISH_KEYS[Level.TOPIC],
            topic_policy=_rate(answers.publish_rate, topic, is_publish=True),
            namespace_policy=_of_cluster(
                namespace.publish_max_message_rate, cluster, is_publish=True
            ),
            namespace=name,
            broker_messages=publish_messages,
            broker_bytes=publish_bytes,
        ),
        unknown=_unknown(answers),
    )


def _unknown(answers: LimitAnswers) -> tuple[str, ...]:
    of_topic = answers.dispatch_rate, answers.subscription_dispatch_rate, answers.publish_rate
    missing = (
        (UNKNOWN_TOPIC, None in of_topic),
        (UNKNOWN_NAMESPACE, answers.namespace is None),
        (UNKNOWN_BROKER, answers.settings is None),
    )
    return tuple(text for text, is_missing in missing if is_missing)


def broker_settings(raw: bytes) -> dict[str, Any]:
    """The settings of a broker, as ``brokers/configuration/runtime`` tells them: texts.

    Raises:
        ReadingError: it is something else.
    """
    return decoded(_SETTINGS, raw, "the settings of a broker")


def _namespace(raw: bytes | None, topic: str) -> _Namespace:
    if not raw:
        return _Namespace()
    return decoded(_NAMESPACE, raw, f"the policies of the namespace of {topic}") or _Namespace()


def _rate(raw: bytes | None, topic: str, *, is_publish: bool = False) -> RatePolicy | None:
    if not raw or not raw.strip():
        return None
    return _policy(decoded(_RATE, raw, f"a rate of {topic}"), is_publish=is_publish)


def _of_cluster(
    rates: dict[str, _Rate] | None, cluster: str, *, is_publish: bool = False
) -> RatePolicy | None:
    if not rates:
        return None
    rate = rates.get(cluster)
    if rate is None and len(rates) == 1:
        rate = next(iter(rates.values()))
    return _policy(rate, is_publish=is_publish)


def _policy(rate: _Rate | None, *, is_publish: bool) -> RatePolicy | None:
    if rate is None:
        return None
    if is_publish:
        return RatePolicy(
            _number(rate.publish_throttling_rate_in_msg),
            _number(rate.publish_throttling_rate_in_byte),
        )
    return RatePolicy(
        messages=_number(rate.dispatch_throttling_rate_in_msg),
        bytes=_number(rate.dispatch_throttling_rate_in_byte),
        period_s=_number(rate.rate_period_in_second) or 1,
        relative=rate.relative_to_publish_rate is True,
    )


def _of_broker(settings: Mapping[str, Any], keys: RateKeys) -> tuple[int, int]:
    """Messages and bytes a second by the broker's settings; 0 for none."""
    return _number(settings.get(keys.messages)), _number(settings.get(keys.bytes))


def _number(value: Any) -> int:
    """A rate; 0, which sets none, for anything that is not a number. Settings are texts."""
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return found if abs(found) <= INT64_MAX // 1_000_000_000 or found < 0 else 0
