"""The settings of producers: access modes, deduplication, encryption."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.delayed_delivery_settings import DelayedDeliverySettings


@dataclass(slots=True)
class ProducerSettings(DelayedDeliverySettings):
    """The values in force. Field names are Pulsar's keys."""
