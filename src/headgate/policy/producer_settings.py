"""The settings of producers: access modes, deduplication, encryption."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.delayed_delivery_settings import DelayedDeliverySettings
from headgate.policy.setting_info import setting


@dataclass(slots=True)
class ProducerSettings(DelayedDeliverySettings):
    """The values in force. Field names are Pulsar's keys."""

    encryptionRequireOnProducer: bool = setting(
        False,
        "Messages must be encrypted by their producers, on all topics. A namespace's policy asks "
        "for it on the topics of that namespace.",
    )
