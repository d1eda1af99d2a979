"""The settings of subscriptions and acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.expiry_settings import ExpirySettings


@dataclass(slots=True)
class SubscriptionSettings(ExpirySettings):
    """The values in force. Field names are Pulsar's keys."""
