"""The settings of producers: access modes, deduplication, encryption."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.delayed_delivery_settings import DelayedDeliverySettings
from headgate.policy.setting_info import count_setting, setting


@dataclass(slots=True)
class ProducerSettings(DelayedDeliverySettings):
    """The values in force. Field names are Pulsar's keys."""

    maxSameAddressProducersPerTopic: int = count_setting(
        "Connected producers of each topic or partition from one IP address; 0 and -1 are no "
        "limit.",
    )
    maxSameAddressConsumersPerTopic: int = count_setting(
        "Connected consumers and readers of each topic or partition from one IP address; 0 and -1 "
        "are no limit.",
    )
    encryptionRequireOnProducer: bool = setting(
        False,
        "Messages must be encrypted by their producers, on all topics. A namespace's policy asks "
        "for it on the topics of that namespace.",
    )
