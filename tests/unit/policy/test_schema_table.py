"""Which rules about schemas are in force on a topic."""

from __future__ import annotations

from headgate.base.schema_types import AutoUpdateStrategy, CompatibilityStrategy
from tests.unit.policy.rig import NAME, PARTITIONED, Rig

S = CompatibilityStrategy


def test_the_most_specific_strategy_counts_and_undefined_is_none() -> None:
    rig = Rig()

    def found() -> S:
        return rig.resolver.schemas.of_topic(NAME).strategy

    def on_namespace(**policies: object) -> None:
        rig.make(rig.catalog.plan_namespace_policies(NAME.namespace, **policies))

    assert found() is S.FULL
    rig.settings.set("schemaCompatibilityStrategy", "UNDEFINED")
    assert found() is S.FULL
    rig.settings.set("schemaCompatibilityStrategy", "FORWARD")
    assert found() is S.FORWARD
    on_namespace(schema_auto_update_compatibility_strategy=AutoUpdateStrategy.AUTO_UPDATE_DISABLED)
    assert found() is S.ALWAYS_INCOMPATIBLE
    on_namespace(schema_compatibility_strategy=S.UNDEFINED)
    assert found() is S.ALWAYS_INCOMPATIBLE
    on_namespace(schema_compatibility_strategy=S.BACKWARD)
    assert found() is rig.resolver.schemas.of_namespace(NAME.namespace).strategy is S.BACKWARD
    rig.make(rig.catalog.plan_topic_policies(NAME, schema_compatibility_strategy=S.UNDEFINED))
    assert found() is S.BACKWARD
    change = rig.catalog.plan_topic_policies(NAME, schema_compatibility_strategy=S.FULL_TRANSITIVE)
    rig.make(change)
    assert found() is S.FULL_TRANSITIVE


def test_the_older_names_stand_for_strategies() -> None:
    found = {each.value: each.strategy for each in AutoUpdateStrategy}
    assert found["ForwardTransitive"] is S.FORWARD_TRANSITIVE
    assert found["AlwaysCompatible"] is S.ALWAYS_COMPATIBLE
    assert set(found.values()) == set(S) - {S.UNDEFINED}


def test_updates_and_validation() -> None:
    rig = Rig()
    namespace = NAME.namespace

    def found() -> tuple[bool, bool]:
        rules = rig.resolver.schemas.of_topic(NAME)
        return rules.auto_update, rules.validation_enforced

    assert found() == (True, False)
    rig.settings.set("isAllowAutoUpdateSchemaEnabled", "false")
    assert found() == (False, False)
    rig.make(
        rig.catalog.plan_namespace_policies(
            namespace, is_allow_auto_update_schema=True, schema_validation_enforced=True
        )
    )
    assert found() == (True, True)
    rig.make(rig.catalog.plan_topic_policies(NAME, schema_validation_enforced=False))
    assert found() == (True, False)
    assert rig.resolver.schemas.of_topic(PARTITIONED.partition_name(0)).validation_enforced
    rig.settings.set("isSchemaValidationEnforced", "true")
    assert found() == (True, True), "a broker that enforces it does so everywhere"
