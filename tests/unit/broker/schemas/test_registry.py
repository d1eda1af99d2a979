"""The registry under many clients, at its bounds, and beside the admin API."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import weakref

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import NamespaceName, TopicName, parse_topic
from headgate.base.schema_types import CompatibilityStrategy, SchemaType
from headgate.base.units import MIB
from headgate.broker.schemas import registry as registry_module
from headgate.broker.schemas.figures import SchemaOperation
from headgate.broker.schemas.registry import SchemaRegistry, version_bytes
from headgate.broker.work.scheduler import JobClass, Steps
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import SCHEMA_PROPERTY_BYTES, SCHEMA_ROW_BYTES, TenantRow
from headgate.schema.definition import DEFINITION_BYTES_MAX, PROPERTIES_MAX, Definition
from headgate.schema.errors import IncompatibleSchemaError, InvalidSchemaError
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


def avro(*fields: str, **more: object) -> Definition:
    described = [{"name": name, "type": "long", "default": 0} for name in fields]
    value = {"type": "record", "name": "R", "fields": described, **more}
    return Definition(SchemaType.AVRO, json.dumps(value).encode())


def schemas_of(world: World) -> SchemaRegistry:
    return world.broker.schemas


def test_versions_are_eight_bytes() -> None:
    assert version_bytes(0) == bytes(8)
    assert version_bytes(258) == b"\0\0\0\0\0\0\1\2"
    assert version_bytes(-1) == b"\xff" * 8


@played()
async def test_a_topic_need_not_exist_for_the_admin_api(world: World) -> None:
    schemas = schemas_of(world)
    assert await schemas.add(NAME, avro("a")) == 0
    assert await schemas.add(NAME, avro("a", doc="x")) == 0
    assert await schemas.add(NAME, avro("b")) == 1
    assert await schemas.find_version(NAME, avro("b")) == 1
    assert await schemas.find_version(NAME, avro("c")) == -1
    client = await world.connect()
    producer = await client.producer(TOPIC)
    assert producer.schema_version == b""
    with pytest.raises(RefusalError, match="Namespace not found"):
        await schemas.add(parse_topic("public/none/x"), avro("a"))
    with pytest.raises(InvalidSchemaError):
        await schemas.find_version(NAME, Definition(SchemaType.AVRO, b"x"))


@played()
async def test_a_comparison_without_an_addition(world: World) -> None:
    schemas = schemas_of(world)
    assert await schemas.check_compatible(NAME, avro("a")) is CompatibilityStrategy.FULL
    await schemas.add(NAME, avro("a"))
    await schemas.check_compatible(NAME, avro("a"))
    await schemas.check_compatible(NAME, avro("b"))
    with pytest.raises(IncompatibleSchemaError, match="exists schema type AVRO"):
        await schemas.check_compatible(NAME, Definition(SchemaType.STRING))
    assert world.broker.catalog.schema(NAME, 1) is None


@played()
async def test_deletions(world: World) -> None:
    schemas = schemas_of(world)
    assert await schemas.delete(NAME, force=False) == -1
    await schemas.add(NAME, avro("a"))
    assert await schemas.delete(NAME, force=False) == 1
    assert await schemas.delete(NAME, force=False) == 1
    assert await schemas.add(NAME, Definition(SchemaType.STRING)) == 2
    assert await schemas.delete(NAME, force=True) == 2
    assert await schemas.add(NAME, avro("a")) == 0
    world.store.fail_next(StorageError("hiccup", retryable=True))
    with pytest.raises(StorageError):
        await schemas.delete(NAME, force=True)
    assert await schemas.find_version(NAME, avro("a")) == 0


@played()
async def test_the_bounds_of_versions_and_of_memory(world: World) -> None:
    schemas, settings = schemas_of(world), world.broker.settings
    settings.set("headgateSchemaVersionsPerTopic", "2")
    await schemas.add(NAME, avro("a"))
    await schemas.add(NAME, avro("b"))
    with pytest.raises(IncompatibleSchemaError, match="headgateSchemaVersionsPerTopic=2"):
        await schemas.add(NAME, avro("c"))
    assert await schemas.add(NAME, avro("a")) == 0
    await schemas.delete(NAME, force=False)
    assert await schemas.add(NAME, avro("c")) == 3
    settings.set("headgateSchemaMemoryMB", "2")
    large = avro("a", doc="x" * 100_000)
    for count in range(20):
        await schemas.add(parse_topic(f"t{count}"), large)
    with pytest.raises(IncompatibleSchemaError, match="all topics take"):
        await schemas.add(parse_topic("one-more"), large)
    assert 2_000_000 < world.broker.catalog.schema_bytes < 1 << 21
    with pytest.raises(IncompatibleSchemaError, match="a sixteenth of headgateSchemaMemoryMB=2"):
        await schemas.add(parse_topic("t0"), avro("b", doc="x" * 100_000))


@played(settings={"headgateSchemaMemoryMB": "1"})
async def test_definitions_without_bytes_and_deletions_are_bounded_too(world: World) -> None:
    schemas, names = schemas_of(world), 1 * MIB // SCHEMA_ROW_BYTES
    empty = Definition(SchemaType.STRING)
    for count in range(names):
        name = parse_topic(f"t{count}")
        await schemas.add(name, empty)
        if count % 2:
            await schemas.delete(name, force=False)
    with pytest.raises(IncompatibleSchemaError, match="all topics take"):
        await schemas.add(parse_topic("one-more"), empty)
    catalog, writer = world.broker.catalog, world.broker.writer
    tenant = TenantRow(allowed_clusters=("standalone",), admin_roles=())
    await writer.commit(catalog.plan_create_tenant("other", tenant))
    await writer.commit(catalog.plan_create_namespace(NamespaceName("other", "ns")))
    assert await schemas.add(parse_topic("other/ns/t"), empty) == 0  # another tenant's room
    await schemas.delete(parse_topic("t1"), force=True)
    await schemas.delete(parse_topic("t3"), force=True)
    assert await schemas.add(parse_topic("one-more"), empty) == 0


@played(settings={"headgateSchemaMemoryMB": "1"})
async def test_short_properties_of_versions_count_what_they_take(world: World) -> None:
    schemas, catalog = schemas_of(world), world.broker.catalog
    properties = {f"{number:03}": "" for number in range(600)}
    await schemas.add(NAME, Definition(SchemaType.STRING, properties=properties))
    assert catalog.schema_bytes == SCHEMA_ROW_BYTES + 600 * (SCHEMA_PROPERTY_BYTES + 3)
    more = {f"{number:03}": "" for number in range(700)}
    with pytest.raises(IncompatibleSchemaError, match="a sixteenth of headgateSchemaMemoryMB=1"):
        await schemas.add(parse_topic("other"), Definition(SchemaType.STRING, properties=more))


@played(settings={"headgateSchemaMemoryMB": "1"})
async def test_a_wide_character_in_a_property_counts_what_it_takes(world: World) -> None:
    """Python keeps each character of a text as wide as its widest one."""
    schemas, wide = schemas_of(world), {"k": "\U0001f600" + "a" * 20_000}
    with pytest.raises(IncompatibleSchemaError, match="a sixteenth of headgateSchemaMemoryMB=1"):
        await schemas.add(NAME, Definition(SchemaType.STRING, properties=wide))


@played()
async def test_a_tenant_with_many_checks_holds_up_no_other(world: World) -> None:
    schemas = schemas_of(world)
    ended: list[str] = []

    async def check(topic: str) -> None:
        with contextlib.suppress(InvalidSchemaError):
            await schemas.find_version(parse_topic(topic), avro("a", doc="x" * 50_000))
        ended.append(topic.partition("/")[0])

    many = [asyncio.create_task(check(f"many/ns/t{number}")) for number in range(60)]
    await asyncio.sleep(0)
    await asyncio.gather(*(check(f"few/ns/t{number}") for number in range(3)))
    assert ended.count("few") == 3
    assert ended.count("many") < 10
    await asyncio.gather(*many)


@played()
async def test_tenants_whose_checks_take_long_hold_up_no_other_one(world: World) -> None:
    """Two tenants with thousands of other commands had all slots, for as long as these took."""
    schemas, others = schemas_of(world), ("many", "more")
    left = 100_000

    def much_else() -> Steps:
        nonlocal left
        while left > 0:
            left -= 1
            yield 1_000_000

    async def check(topic: str) -> None:
        with contextlib.suppress(InvalidSchemaError):
            await schemas.find_version(parse_topic(topic), avro("a", doc="x" * 50_000))

    for tenant in others:
        for _ in range(1_000):
            world.broker.work.run("much else", JobClass.COMMAND, much_else(), tenant)
    many = [asyncio.create_task(check(f"{t}/ns/t{n}")) for t in others for n in range(5)]
    await asyncio.sleep(0)
    for number in range(3):
        await check(f"few/ns/t{number}")
    assert left > 0
    assert not any(task.done() for task in many)
    left = 0
    await asyncio.gather(*many)


@played()
async def test_a_check_ends_with_its_client(world: World) -> None:
    schemas, waiting = schemas_of(world), world.broker.work._jobs[JobClass.COMMAND]
    fields = [f"field_{number}" for number in range(2_000)]
    topic = await world.broker.registry.create(NAME)
    await schemas.add(NAME, avro(*fields))
    for number in range(20):
        check = asyncio.create_task(schemas.check_consumer(topic, avro(*fields, doc=str(number))))
        while not waiting:
            await asyncio.sleep(0)
        check.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        assert check.cancelled()
        assert not waiting


@played()
async def test_a_definition_that_waits_for_its_check_leaves_with_its_client(world: World) -> None:
    """Each of a thousand topics kept one of 128 KiB, which was charged to nobody."""
    schemas, jobs = schemas_of(world), world.broker.work._jobs[JobClass.COMMAND]
    names = [parse_topic(f"{TOPIC}-{number}") for number in range(20)]
    for name in names:
        await world.broker.registry.create(name)
    large = avro(*(f"field_{number}" for number in range(2_000)))
    makings = [asyncio.create_task(schemas.version_for_producer(name, large)) for name in names]
    while not jobs:
        await asyncio.sleep(0)
    assert len(schemas._changes) == len(names)
    for making in makings:
        making.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert all(making.cancelled() for making in makings)
    assert (len(schemas._changes), bool(jobs)) == (0, False)
    assert all(world.broker.catalog.schema(name) is None for name in names)


@played()
async def test_a_definition_that_is_being_stored_is_stored_without_its_client(world: World) -> None:
    schemas, catalog = schemas_of(world), world.broker.catalog
    adding = asyncio.create_task(schemas.add(NAME, avro("a")))
    while not catalog.in_flight_count:
        await asyncio.sleep(0)
    adding.cancel()
    later = [asyncio.create_task(schemas.add(NAME, avro(name))) for name in ("b", "a")]
    assert await asyncio.gather(*later) == [1, 0]
    assert adding.cancelled()

    adding = asyncio.create_task(schemas.add(NAME, avro("c")))
    while not catalog.in_flight_count:
        await asyncio.sleep(0)
    adding.cancel()
    assert await schemas.delete(NAME, force=False) == 3


@played()
async def test_a_crowd_is_compared_once(world: World) -> None:
    schemas = schemas_of(world)
    await schemas.add(NAME, avro("a"))
    topic = await world.broker.registry.create(NAME)
    asked: list[int] = []
    work = world.broker.work
    run = work.run

    def counting(*job):  # type: ignore[no-untyped-def]
        asked.append(1)
        return run(*job)

    work.run = counting  # type: ignore[method-assign]
    for _ in range(50):
        await schemas.check_consumer(topic, avro("a", doc="java"))
    assert len(asked) == 2, "well formed, and compatible"
    for _ in range(50):
        await schemas.check_consumer(topic, avro("a"))
    assert len(asked) == 2
    await schemas.add(NAME, avro("b"))
    before = len(asked)
    await schemas.check_consumer(topic, avro("a", doc="java"))
    assert len(asked) == before + 2, "another version is another comparison"


@played()
async def test_verdicts_are_bounded(world: World) -> None:
    schemas = schemas_of(world)
    await schemas.add(NAME, avro("a"))
    topic = await world.broker.registry.create(NAME)
    monkey = registry_module.VERDICTS_MAX
    try:
        registry_module.VERDICTS_MAX = 5  # type: ignore[misc]
        for number in range(12):
            await schemas.check_consumer(topic, avro("a", doc=str(number)))
        assert len(schemas._verdicts) == 5
    finally:
        registry_module.VERDICTS_MAX = monkey  # type: ignore[misc]


@played()
async def test_a_schema_that_was_deleted_takes_no_memory(world: World) -> None:
    schemas = schemas_of(world)
    await schemas.add(NAME, avro("a"))
    await schemas.find_version(NAME, avro("a", doc="index"))
    await schemas.check_compatible(NAME, avro("b"))
    row = world.broker.catalog.schema(NAME)
    assert row is not None
    held = weakref.ref(row)
    del row
    await schemas.delete(NAME, force=True)
    gc.collect()
    assert held() is None


@played()
async def test_no_depth_of_a_definition_ends_the_broker(world: World) -> None:
    schemas = schemas_of(world)
    for depth in range(850, 1_000):  # somewhere there the decoder gives up, or what shows a value
        text = '{"type":"record","x":' + "[" * depth + "]" * depth + "}"
        with pytest.raises(InvalidSchemaError):
            await schemas.find_version(NAME, Definition(SchemaType.AVRO, text.encode()))
    assert world.is_running


@played()
async def test_all_clients_get_one_version_each(world: World) -> None:
    schemas = schemas_of(world)
    await world.broker.registry.create(NAME)
    wanted = [avro(f"f{number % 7}") for number in range(70)]
    found = await asyncio.gather(*(schemas.version_for_producer(NAME, each) for each in wanted))
    assert len(set(found)) == 7
    by_schema = {each.data: version for each, version in zip(wanted, found, strict=True)}
    assert all(by_schema[each.data] == version for each, version in zip(wanted, found, strict=True))
    assert [row.version for row in world.broker.catalog.schemas(NAME)] == list(range(7))


@played()
async def test_another_change_is_stored_meanwhile(world: World) -> None:
    """A definition that was compared with a version that goes is compared again."""
    schemas, catalog = schemas_of(world), world.broker.catalog
    await schemas.add(NAME, avro("a"))
    latest = catalog.latest_schema(NAME)
    assert latest is not None
    world.lanes[2].freeze()
    change = catalog.plan_delete_schema(NAME, latest, force=False, now_ms=1)
    deleting = asyncio.ensure_future(world.broker.writer.commit(change))
    adding = asyncio.ensure_future(schemas.add(NAME, avro("a", "b")))
    await asyncio.sleep(1)
    assert not adding.done()
    world.lanes[2].thaw()
    await deleting
    assert await adding == 2
    assert [row.version for row in catalog.schemas(NAME)] == [2]


@played()
async def test_long_comparisons_delay_nobody(world: World) -> None:
    """Definitions of 128 KiB are read in slices, a few at a time."""
    schemas = schemas_of(world)
    names: list[TopicName] = [parse_topic(f"t{number}") for number in range(6)]
    fields = [f"some_column_{number}" for number in range(1_800)]
    longest = avro(*fields)
    assert 100_000 < len(longest.data) < 128 << 10
    await asyncio.gather(*(schemas.add(name, longest) for name in names))
    changed = avro(*fields[:-1], "another")
    found = await asyncio.gather(*(schemas.add(name, changed) for name in names))
    assert set(found) == {1}


@played()
async def test_what_is_asked_is_counted_by_namespace(world: World) -> None:
    schemas = schemas_of(world)
    await schemas.add(NAME, avro("a"))
    await schemas.add(NAME, avro("b"))
    with pytest.raises(IncompatibleSchemaError):
        await schemas.add(NAME, Definition(SchemaType.STRING))
    assert schemas.get(NAME) is not None
    assert schemas.get(NAME, 7) is None
    await schemas.delete(NAME, force=False)
    schemas.get(parse_topic("public/none/x"))
    ((namespace, found),) = schemas.figures.by_namespace()
    counts = {each.value: (of.done, of.failed) for each, of in found.operations.items()}
    assert namespace == NAME.namespace
    assert counts == {"get": (2, 0), "put": (2, 1), "del": (1, 0)}
    assert (found.compatible, found.incompatible) == (1, 1)
    assert found.operations[SchemaOperation.PUT].took_ns >= 0


@played()
async def test_a_definition_that_is_too_large_is_not_read(world: World) -> None:
    schemas = schemas_of(world)
    large = Definition(SchemaType.AVRO, b"[" * (DEFINITION_BYTES_MAX + 1))
    await world.broker.registry.create(NAME)
    topic = world.broker.registry.get(NAME)
    assert topic is not None
    for check in (
        schemas.find_version(NAME, large),
        schemas.check_compatible(NAME, large),
        schemas.check_consumer(topic, large),
        schemas.add(NAME, large),
    ):
        with pytest.raises(IncompatibleSchemaError, match="131073 bytes: 131072 are allowed"):
            await check


@played()
async def test_a_verdict_is_short_whatever_a_field_is_called(world: World) -> None:
    schemas = schemas_of(world)
    await schemas.add(NAME, avro("a"))
    name = "x" * 100_000
    value = {"type": "record", "name": "R", "fields": [{"name": name, "type": "long"}]}
    new = Definition(SchemaType.AVRO, json.dumps(value).encode())
    with pytest.raises(IncompatibleSchemaError) as caught:
        await schemas.add(NAME, new)
    assert len(str(caught.value)) == registry_module.WHY_CHARACTERS_MAX


@played()
async def test_a_definition_with_too_many_properties_is_refused(world: World) -> None:
    schemas = schemas_of(world)

    def definition(count: int) -> Definition:
        return Definition(SchemaType.STRING, b"", {f"k{number}": "" for number in range(count)})

    assert await schemas.add(NAME, definition(PROPERTIES_MAX)) == 0
    for check in (schemas.add, schemas.find_version, schemas.check_compatible):
        with pytest.raises(IncompatibleSchemaError, match="1001 properties: 1000 are allowed"):
            await check(NAME, definition(PROPERTIES_MAX + 1))


@played()
async def test_many_properties_are_encoded_in_slices_and_kept(world: World) -> None:
    schemas = schemas_of(world)
    await schemas.add(
        NAME, Definition(SchemaType.STRING, b"", {f"k{number}": "" for number in range(1_000)})
    )
    row = schemas.get(NAME)
    assert row is not None
    jobs: list[str] = []
    run = world.broker.work.run

    async def watched(name: str, job_class: JobClass, steps: Steps, owner: str) -> None:
        jobs.append(name)
        await run(name, job_class, steps, owner)

    world.broker.work.run = watched  # type: ignore[method-assign]
    answers = await asyncio.gather(*(schemas.encoded(NAME, row) for _ in range(50)))
    assert len({id(answer) for answer in answers}) <= registry_module.TENANT_CHECKS_MAX
    before = len(jobs)
    assert before >= 1
    assert await schemas.encoded(NAME, row) == answers[0]
    assert len(jobs) == before
    few = Definition(SchemaType.STRING, b"", {"k": "v"})
    await schemas.add(NAME, few)
    row = schemas.get(NAME)
    assert row is not None
    before = len(jobs)
    await schemas.encoded(NAME, row)
    assert len(jobs) == before


@played()
async def test_the_error_of_a_definition_is_freed_without_a_collection(world: World) -> None:
    """It leads to the decoded definition: 300 refused ones took 650 MB until a collection."""
    gone: list[weakref.ref[InvalidSchemaError]] = []
    gc.disable()
    try:
        for _ in range(2):
            try:
                await schemas_of(world).add(NAME, Definition(SchemaType.AVRO, b'{"type": "none"}'))
            except InvalidSchemaError as error:
                gone.append(weakref.ref(error))
        await asyncio.sleep(0)
        assert [one() for one in gone] == [None, None]
    finally:
        gc.enable()
