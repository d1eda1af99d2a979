"""A catalog whose changes are durable at once, with two topics and the resolver over it."""

from __future__ import annotations

from headgate.base.names import parse_topic
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.policies import DispatchRate, PublishRate
from headgate.policy.resolver import PolicyResolver
from headgate.policy.settings import Settings

NAME = parse_topic("persistent://public/default/orders")
PARTITIONED = parse_topic("persistent://public/default/parted")
SYSTEM = parse_topic("persistent://headgate/telemetry/samples")
UNLIMITED = PublishRate(unlimited=True)


class Rig:
    """The policies of a broker that has no topic loaded."""

    def __init__(self) -> None:
        self.catalog = Catalog("c", {})
        self.settings = Settings()
        self.resolver = PolicyResolver(self.catalog, self.settings, [SYSTEM.full])
        self.make(self.catalog.plan_first_boot())
        self.make(self.catalog.plan_create_topic(NAME, now_ms=0))
        self.make(self.catalog.plan_create_partitioned(PARTITIONED, 2, now_ms=0))

    def make(self, change: Change | None) -> None:
        assert change is not None
        self.catalog.apply(change)

    def publish_on_topic(self, rate: PublishRate | None) -> None:
        self.make(self.catalog.plan_topic_policies(NAME, publish_rate=rate))

    def publish_on_namespace(self, rate: PublishRate | None) -> None:
        self.make(self.catalog.plan_namespace_policies(NAME.namespace, publish_rate=rate))


def rate(messages: int = -1, size: int = -1, period: int = 1) -> DispatchRate:
    return DispatchRate(
        dispatch_throttling_rate_in_msg=messages,
        dispatch_throttling_rate_in_byte=size,
        rate_period_in_second=period,
    )


def amounts(effective: EffectiveLimit) -> tuple[int | None, int | None, str]:
    """Messages and bytes of a limit, and where it is set."""
    limit = effective.limit
    if limit is None:
        return None, None, effective.source
    return limit.messages, limit.bytes, effective.source
