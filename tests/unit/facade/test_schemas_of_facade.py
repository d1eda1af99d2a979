"""Schemas over the facade: the registry's refusals have the admin API's statuses."""

from __future__ import annotations

import json

import pytest

from headgate.base.names import parse_topic
from headgate.base.schema_types import CompatibilityStrategy, SchemaType
from headgate.facade.admin_facade import AdminFacade
from headgate.metadata.errors import RefusalError
from headgate.schema.definition import Definition
from headgate.testing import World
from tests.unit.broker.playing import played

NAME = parse_topic("persistent://public/default/t")
RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
GOOD = Definition(SchemaType.AVRO, json.dumps(RECORD).encode())
OTHER = Definition(SchemaType.AVRO, GOOD.data.replace(b'"a"', b'"b"'))
BAD = Definition(SchemaType.AVRO, b"x")


@played()
async def test_what_is_refused_and_what_is_not(world: World) -> None:
    facade = AdminFacade(world.broker, world.observer)
    assert facade.schema_rules(NAME).strategy is CompatibilityStrategy.FULL
    assert facade.namespace_schema_rules(NAME.namespace).auto_update
    assert await facade.add_schema(NAME, GOOD) == 0
    assert await facade.schema_version(NAME, GOOD) == 0
    assert await facade.schema_version(NAME, OTHER) == -1
    assert await facade.check_schema(NAME, GOOD) is CompatibilityStrategy.FULL
    for schema, status in ((OTHER, 409), (BAD, 422)):
        for asking in (facade.add_schema(NAME, schema), facade.check_schema(NAME, schema)):
            with pytest.raises(RefusalError) as caught:
                await asking
            assert caught.value.status == status
    with pytest.raises(RefusalError) as caught:
        await facade.schema_version(NAME, BAD)
    assert caught.value.status == 422
    assert await facade.delete_schema(NAME, force=False) == 1
    assert await facade.add_schema(NAME, OTHER) == 2
