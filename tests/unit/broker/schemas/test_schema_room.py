"""Bounds on the memory of schemas: a tenant that fills them holds up itself."""

from __future__ import annotations

import pytest

from headgate.base.units import MIB
from headgate.broker.schemas.schema_room import SchemaUse, check_room
from headgate.schema.errors import IncompatibleSchemaError


def test_a_topic_has_a_sixteenth() -> None:
    check_room(SchemaUse(MIB - 10, MIB, MIB, 1), 10, 16)
    with pytest.raises(IncompatibleSchemaError, match="a sixteenth of headgateSchemaMemoryMB=16"):
        check_room(SchemaUse(MIB - 10, MIB, MIB, 1), 11, 16)


def test_at_the_bound_a_tenant_above_the_average_adds_no_more() -> None:
    large = SchemaUse(0, 15 * MIB, 16 * MIB, 2)
    with pytest.raises(IncompatibleSchemaError, match="those of the tenant 15728640"):
        check_room(large, 1, 16)
    check_room(large._replace(of_tenant=MIB), 1, 16)
    check_room(large._replace(of_tenant=0, tenants_count=1), 1, 16)  # its first schema
    with pytest.raises(IncompatibleSchemaError, match="The schemas of all topics take"):
        check_room(SchemaUse(0, 16 * MIB, 16 * MIB, 1), 1, 16)


def test_a_quarter_beyond_it_nobody_adds_any() -> None:
    use = SchemaUse(0, 0, 20 * MIB - 1, 9)
    check_room(use, 1, 16)
    with pytest.raises(IncompatibleSchemaError, match="headgateSchemaMemoryMB=16"):
        check_room(use, 2, 16)


def test_near_the_limit_on_the_memory_all_have_a_part_of_the_bound() -> None:
    large = SchemaUse(0, MIB, MIB, 1)
    check_room(large, 1, 16, 1 / 8)
    with pytest.raises(IncompatibleSchemaError, match="more, because the broker is near the limit"):
        check_room(large, 1, 16, 1 / 16)
    check_room(large._replace(of_tenant=0, tenants_count=2), 1, 16, 1 / 16)


def test_near_that_limit_one_with_few_goes_on_whatever_others_have() -> None:
    small = SchemaUse(0, 0, 8 * MIB, 3)
    check_room(small, 1_000, 16, 1 / 16)
    check_room(small._replace(of_tenant=MIB), 1_000, 16, 1 / 16)
    with pytest.raises(IncompatibleSchemaError, match="near the limit"):
        check_room(small._replace(of_tenant=3 * MIB), 1_000, 16, 1 / 16)
