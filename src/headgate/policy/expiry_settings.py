"""The settings of what ends by itself: messages, subscriptions and topics."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.producer_settings import ProducerSettings


@dataclass(slots=True)
class ExpirySettings(ProducerSettings):
    """The values in force. Field names are Pulsar's keys."""
