"""The settings of producers: access modes, deduplication, encryption."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.delayed_delivery_settings import DelayedDeliverySettings
from headgate.policy.setting_info import count_setting, setting


@dataclass(slots=True)
class ProducerSettings(DelayedDeliverySettings):
    """The values in force. Field names are Pulsar's keys."""

    brokerDeduplicationEnabled: bool = setting(
        False,
        "Store no message twice: of each producer name, drop messages whose sequence ids are not "
        "above the highest one that is stored. Policies of namespaces and topics override it.",
    )
    brokerDeduplicationMaxNumberOfProducers: int = setting(
        10_000,
        "Producers that deduplication remembers for a topic, besides those that are connected; of "
        "more, the one that is disconnected for longest is forgotten.",
    )
    brokerDeduplicationProducerInactivityTimeoutMinutes: int = setting(
        360,
        "Minutes after which deduplication forgets a producer that is disconnected.",
        minimum=1,
    )
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
