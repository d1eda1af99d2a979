"""The settings of delayed delivery."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.schema_settings import SchemaSettings


@dataclass(slots=True)
class DelayedDeliverySettings(SchemaSettings):
    """The values in force. Field names are Pulsar's keys."""
