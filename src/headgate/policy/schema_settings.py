"""The settings of schemas: their registry, compatibility and validation."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.revocation_settings import RevocationSettings


@dataclass(slots=True)
class SchemaSettings(RevocationSettings):
    """The values in force. Field names are Pulsar's keys."""
