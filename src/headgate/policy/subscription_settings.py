"""The settings of subscriptions and acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.expiry_settings import ExpirySettings
from headgate.policy.setting_info import setting


@dataclass(slots=True)
class SubscriptionSettings(ExpirySettings):
    """The values in force. Field names are Pulsar's keys."""

    acknowledgmentAtBatchIndexLevelEnabled: bool = setting(
        True,
        "Acknowledgements of single messages of a batch are kept, and those messages are not "
        "delivered again. False leaves a batch unacknowledged until all of it is acknowledged.",
        dynamic=True,
    )
    enableBrokerSideSubscriptionPatternEvaluation: bool = setting(
        True,
        "The broker evaluates the patterns of clients that subscribe to all topics that match, and "
        "tells them at once when such topics come and go. If not, clients list the namespace and "
        "evaluate the pattern themselves, every minute by default.",
    )
    subscriptionPatternMaxLength: int = setting(
        50,
        "Longest pattern in characters that the broker evaluates; the client evaluates a longer "
        "one itself.",
        minimum=0,
        maximum=1_024,
    )
    activeConsumerFailoverConsistentHashing: bool = setting(
        False,
        "Of a Failover subscription of a partition, the active consumer is found by a consistent "
        "hash of the names, as on other topics, and not by the number of the partition.",
    )
