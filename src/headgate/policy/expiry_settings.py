"""The settings of what ends by itself, and of what a client's first use creates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.metadata.policies import SUBSCRIPTION_TYPES
from headgate.policy.producer_settings import ProducerSettings
from headgate.policy.setting_info import TextRule, names_of, setting


def _problem_of_types(text: str) -> str:
    for name in names_of(text):
        if name not in SUBSCRIPTION_TYPES:
            return f"{name[:80]!r} is no type of subscription"
    return "" if names_of(text) else "it names no type"


_TYPES: Final = TextRule(
    f"one or more of {', '.join(SUBSCRIPTION_TYPES)}, with commas between them", _problem_of_types
)


@dataclass(slots=True)
class ExpirySettings(ProducerSettings):
    """The values in force. Field names are Pulsar's keys."""

    ttlDurationDefaultInSeconds: int = setting(
        0,
        "Age in seconds from which unacknowledged messages of topics without a policy expire; 0 is "
        "never.",
    )
    messageExpiryCheckIntervalInMinutes: int = setting(
        5,
        "Most minutes between two looks at a topic with a message TTL. The broker looks when the "
        "oldest message reaches it, so most messages expire within a second, or within a 64th of a "
        "TTL above a minute.",
        minimum=1,
    )
    subscriptionExpirationTimeMinutes: int = setting(
        0,
        "Minutes after which a durable subscription that had no consumer is deleted, on topics "
        "without a policy; 0 is never.",
    )
    subscriptionExpiryCheckIntervalInMinutes: int = setting(
        5, "Minutes between two searches for expired subscriptions.", minimum=1
    )
    brokerDeleteInactiveTopicsMode: str = setting(
        "delete_when_no_subscriptions",
        "Which topics without a policy are inactive: those without producers, consumers and "
        "subscriptions, or also those whose subscriptions have no backlog.",
        dynamic=True,
        choices=("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"),
    )
    brokerDeleteInactiveTopicsMaxInactiveDurationSeconds: int = setting(
        0,
        "Seconds that a topic without a policy must be inactive before it is deleted; 0 or empty "
        "is brokerDeleteInactiveTopicsFrequencySeconds.",
        dynamic=True,
        empty=0,
    )
    brokerDeleteInactivePartitionedTopicMetadataEnabled: bool = setting(
        False,
        "A partitioned topic is deleted when all its partitions are inactive; false: it stays, "
        "with all of them.",
        dynamic=True,
    )
    allowAutoSubscriptionCreation: bool = setting(
        True, "A consumer creates the durable subscription that it names.", dynamic=True
    )
    subscriptionTypesEnabled: str = setting(
        ",".join(SUBSCRIPTION_TYPES),
        "Types of subscriptions that consumers may use on topics without a policy, with commas "
        "between them.",
        dynamic=True,
        rule=_TYPES,
    )
    forceDeleteNamespaceAllowed: bool = setting(
        False,
        "A namespace may be deleted with its topics (force). False: it must be empty.",
        dynamic=True,
    )
    forceDeleteTenantAllowed: bool = setting(
        False,
        "A tenant may be deleted with its namespaces and their topics (force). False: it must be "
        "empty.",
        dynamic=True,
    )
