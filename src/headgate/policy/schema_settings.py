"""The settings of schemas: their registry, compatibility and validation."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.schema_types import CompatibilityStrategy
from headgate.policy.revocation_settings import RevocationSettings
from headgate.policy.setting_info import setting


@dataclass(slots=True)
class SchemaSettings(RevocationSettings):
    """The values in force. Field names are Pulsar's keys."""

    schemaCompatibilityStrategy: str = setting(
        CompatibilityStrategy.FULL.value,
        "Which definitions of a schema may follow those that a topic has, if neither its policies "
        "nor those of its namespace say it. UNDEFINED is FULL.",
        choices=tuple(each.value for each in CompatibilityStrategy),
    )
    isSchemaValidationEnforced: bool = setting(
        False,
        "Refuse producers without a schema on topics that have one; also a policy of namespaces "
        "and topics.",
    )
    isAllowAutoUpdateSchemaEnabled: bool = setting(
        True,
        "Producers and consumers may bring new definitions of a schema; false leaves that to the "
        "admin API. Also a policy of namespaces.",
        dynamic=True,
    )
    headgateSchemaVersionsPerTopic: int = setting(
        1_000,
        "Most versions of the schema of one topic; more are refused.",
        dynamic=True,
        minimum=1,
    )
    headgateSchemaMemoryMB: int = setting(
        64,
        "Most megabytes of definitions of all versions of the schemas of all topics, which the "
        "broker keeps in memory, and 16 times the most of one topic; more are refused, first to "
        "the tenants that have the most.",
        dynamic=True,
        minimum=1,
    )
