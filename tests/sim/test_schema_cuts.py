"""Power cuts while clients bring definitions: a version that one was told stays that definition."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from headgate.base.names import parse_topic
from headgate.base.schema_types import CompatibilityStrategy, SchemaType
from headgate.testing import ConnectionLostError, RefusedError, World
from headgate.wire.messages import Schema

TOPIC = "persistent://public/default/orders"
NAME = parse_topic(TOPIC)


def record(number: int) -> Schema:
    fields = [{"name": f"f{number}", "type": "long", "default": 0}]
    definition = {"type": "record", "name": "R", "fields": fields}
    return Schema(name="", type=SchemaType.AVRO, schema_data=json.dumps(definition).encode())


async def bring(world: World, number: int, told: dict[int, set[int]]) -> None:
    """Bring a definition as a producer or over REST's way, and note the version."""
    schema = record(number)
    try:
        client = await world.connect()
        producer = await client.producer(TOPIC, schema=schema)
    except (ConnectionLostError, RefusedError):
        return
    told.setdefault(number, set()).add(int.from_bytes(producer.schema_version, "big"))


async def play(world: World, random_: random.Random) -> None:
    told: dict[int, set[int]] = {}
    await world.start()
    change = world.broker.catalog.plan_namespace_policies(
        NAME.namespace, schema_compatibility_strategy=CompatibilityStrategy.FULL_TRANSITIVE
    )
    await world.broker.commit(change)
    for _ in range(6):
        bringing = [
            asyncio.ensure_future(bring(world, random_.randrange(12), told)) for _ in range(8)
        ]
        await asyncio.sleep(random_.random() * 0.02)
        world.crash()
        await asyncio.gather(*bringing)
        await world.start()
        catalog = world.broker.catalog
        rows = catalog.schemas(NAME)
        assert [row.version for row in rows] == list(range(len(rows)))
        stored = {row.data: row.version for row in rows}
        assert len(stored) == len(rows), "no definition has two versions"
        for number, versions in told.items():
            assert versions == {stored[record(number).schema_data]}
        assert catalog.schema_bytes == sum(row.size_bytes for row in rows)
    for number in range(12):
        await bring(world, number, told)
    assert len(told) == 12
    assert all(len(versions) == 1 for versions in told.values())


@pytest.mark.parametrize("seed", range(8))
def test_versions_are_kept_through_power_cuts(seed: int) -> None:
    with World(seed) as world:
        world.run(play(world, random.Random(seed)))
