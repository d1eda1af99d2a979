"""The values of policies in words."""

from __future__ import annotations

import pytest

from headgate.metadata.policies import (
    BacklogQuota,
    DelayedDeliveryPolicy,
    DispatchRate,
    PublishRate,
    Retention,
)
from headgate.observe.changes.policy_values import TEXT_MAX, value_text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("dispatch_rate", None, None),
        ("dispatch_rate", DispatchRate(100, rate_period_in_second=1), "100 msg/s"),
        ("dispatch_rate", DispatchRate(100, 5_000, rate_period_in_second=10),
         "100 msg per 10 s and 5,000 B per 10 s"),
        ("dispatch_rate", DispatchRate(50, relative_to_publish_rate=True),
         "50 msg/s above the publish rate"),
        ("dispatch_rate", DispatchRate(unlimited=True), "no limit"),
        ("dispatch_rate", DispatchRate(-1, -1), None),
        ("publish_rate", PublishRate(10), "10 msg/s"),
        ("backlog_quotas", BacklogQuota("producer_exception", 1024**2),
         "1 MiB (producer_exception)"),
        ("backlog_quotas", BacklogQuota("consumer_backlog_eviction", -1, 60),
         "60 s (consumer_backlog_eviction)"),
        ("retention", Retention(60, -1), "1 h and any size"),
        ("message_ttl_in_seconds", 300, "5 min"),
        ("message_ttl_in_seconds", 0, "none"),
        ("max_unacked_messages_per_consumer", 500, "500"),
        ("deduplication", True, "on"),
        ("subscription_types_enabled", ("Shared", "Failover"), "Shared, Failover"),
        ("subscription_types_enabled", (), None),
        ("delayed_delivery", DelayedDeliveryPolicy(active=True),
         '{"tickTime":0,"active":true,"maxDeliveryDelayInMillis":0}'),
    ],
)  # fmt: skip
def test_values(name: str, value: object, text: str | None) -> None:
    assert value_text(name, value) == text


def test_a_text_is_short_and_printable() -> None:
    assert value_text("x", "a\x1b[31m") == "a\N{REPLACEMENT CHARACTER}[31m"
    assert len(value_text("x", "a" * 500) or "") == TEXT_MAX + 3
