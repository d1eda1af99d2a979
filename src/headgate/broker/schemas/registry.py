"""The registry of schemas: versions of definitions, added and checked as in Pulsar.

A topic's versions count from 0. A definition that the topic has keeps its version; a new one gets
the next number if the strategy in force allows it. All partitions share the schema of their
partitioned topic. Changes of one topic's schema run one after the other.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast
from weakref import ref

from headgate.base.errors import HeadgateError
from headgate.base.names import TopicName
from headgate.base.schema_types import CompatibilityStrategy, SchemaType
from headgate.broker.keyed_mutex import KeyedMutex
from headgate.broker.registry import TopicNotFoundError
from headgate.broker.schemas.encoded_schemas import PIECE_PROPERTIES, EncodedSchemas
from headgate.broker.schemas.figures import SchemaFigures, SchemaOperation
from headgate.broker.schemas.schema_room import SchemaUse, check_room
from headgate.broker.schemas.version_index import VersionIndex, definition_of
from headgate.broker.work.scheduler import JobClass, Steps, WorkScheduler
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError, conflict
from headgate.metadata.rows import SchemaRow, schema_bytes
from headgate.policy.resolver import PolicyResolver
from headgate.policy.settings import Settings
from headgate.schema import definition as definitions
from headgate.schema.compatibility import TRANSITIVE, check_definition, incompatibility
from headgate.schema.definition import DEFINITION_BYTES_MAX, PROPERTIES_MAX, Definition
from headgate.schema.errors import IncompatibleSchemaError, InvalidSchemaError
from headgate.storage.fair_slots import FairSlots
from headgate.storage.metadata_writer import MetadataWriter

T = TypeVar("T")
NO_VERSION: Final = b""
"""The version in the answer to a producer without a schema."""

UNKNOWN_VERSION: Final = -1
"""The version of a definition that a topic does not have, as in Pulsar."""

TRIES: Final = 8
"""How often a change is planned again because the admin API changed the schema meanwhile."""

CHECKS_MAX: Final = 4
TENANT_CHECKS_MAX: Final = 2
TENANT_CHECKS_MIN: Final = 1
"""Definitions that are read at the same time, of all tenants and of one: one definition takes about
twenty times its size. In the line of a tenant with much other work that takes long, so each tenant
has one in any case."""

WHY_CHARACTERS_MAX: Final = 500
"""A result that is kept has names of a client in it, of any length."""

VERDICTS_MAX: Final = 1_024
"""Comparisons whose result is kept, so that crowds that reconnect are compared once."""

IDLE_CLIENTS_MAX: Final = 2_000
"""Consumers and subscriptions of a topic beyond which it is not idle: each SUBSCRIBE with a first
schema looks at all of them."""

_READER_ASKS_LATEST: Final = frozenset(
    (
        CompatibilityStrategy.BACKWARD,
        CompatibilityStrategy.FORWARD,
        CompatibilityStrategy.FORWARD_TRANSITIVE,
        CompatibilityStrategy.FULL,
    )
)
"""The strategies under which a consumer must read the latest version, as in Pulsar."""


def version_bytes(version: int) -> bytes:
    """A version as the protocol writes it."""
    return version.to_bytes(8, "big", signed=True)


class SchemaHost(Protocol):
    """The broker, as the registry uses it."""

    catalog: Catalog
    writer: MetadataWriter
    policies: PolicyResolver
    settings: Settings
    work: WorkScheduler
    engine: Engine

    def begin_turn(self) -> None:
        """Read the clock: everything until the next call happens at this instant."""


class SchemaRegistry:
    """The schemas of the topics of one broker."""

    def __init__(self, host: SchemaHost) -> None:
        self._catalog = host.catalog
        self._writer = host.writer
        self._rules = host.policies.schemas
        self._settings = host.settings
        self._work = host.work
        self._begin_turn = host.begin_turn
        self._engine = host.engine
        self.figures = SchemaFigures(lambda name: host.catalog.namespace(name) is not None)
        self._index = VersionIndex(host.catalog)
        self._encoded = EncodedSchemas(host.catalog)
        self._changes = KeyedMutex()
        self._checks = FairSlots(CHECKS_MAX, TENANT_CHECKS_MAX, TENANT_CHECKS_MIN)
        self._verdicts: OrderedDict[tuple[str, str, bytes], tuple[ref[SchemaRow], str]] = (
            OrderedDict()
        )
        """They keep no row in memory that its topic no longer has."""

    # -- clients ---------------------------------------------------------------------------

    async def version_for_producer(
        self, name: TopicName, schema: Definition | None, check: Callable[[], None] = lambda: None
    ) -> bytes:
        """The version of a producer's schema once it is durable; empty for one without a schema.

        ``check`` is called before it is added, when other changes of the topic's schema have ended:
        it raises a refusal if the client has lost its right meanwhile.

        Raises:
            IncompatibleSchemaError: the topic does not take it, or needs one.
            InvalidSchemaError: the definition is not well formed.
            TopicNotFoundError: the topic was deleted meanwhile.
            StorageError: the definition could not be stored.
        """
        if schema is None:
            rules = self._rules.of_topic(name)
            if rules.validation_enforced and self._catalog.schema(name) is not None:
                raise IncompatibleSchemaError(
                    "Producers cannot connect or send message without a schema to topics with a "
                    "schema when SchemaValidationEnforced is enabled"
                )
            return NO_VERSION
        return version_bytes(await self._add_by_client(name, schema, check))

    async def check_consumer(
        self, topic: Topic, schema: Definition, check: Callable[[], None] = lambda: None
    ) -> None:
        """Check that a consumer with ``schema`` may join; on an idle topic without a schema it
        brings the first one. ``check`` and errors are those of :meth:`version_for_producer`."""
        name = topic.name
        if schema.type == SchemaType.AUTO_CONSUME:
            return
        _check_size(schema)
        if self._catalog.schema(name) is None and _is_idle(topic):
            await self._add_by_client(name, schema, check)
            return
        strategy = self._rules.of_topic(name).strategy
        if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
            return
        latest = self._catalog.schema(name)
        if latest is None:
            raise IncompatibleSchemaError("Topic does not have schema to check")
        present = [latest]
        if strategy in _READER_ASKS_LATEST:
            strategy = CompatibilityStrategy.BACKWARD
        elif strategy in TRANSITIVE:
            present = self._catalog.schemas(name)
        is_latest = latest.type == schema.type and latest.data == schema.data
        if not (is_latest and len(present) == 1):
            why = await self._verdict(name, schema, present, strategy, is_valid=False)
            if why:
                raise IncompatibleSchemaError(why)

    async def _add_by_client(
        self, name: TopicName, schema: Definition, check: Callable[[], None]
    ) -> int:
        rules = self._rules.of_topic(name)

        async def add() -> int:
            check()
            return await self._add(name, schema, may_add=rules.auto_update, needs_topic=True)

        return await self._change(name, SchemaOperation.PUT, add)

    async def _change(
        self,
        name: TopicName,
        operation: SchemaOperation,
        change: Callable[[], Coroutine[Any, Any, int]],
    ) -> int:
        """Run a change of a topic's schema alone, and count it. It ends with its client: a
        definition that waits for its comparison is charged to that one alone. What is being stored
        is stored all the same, and later changes wait for it."""
        began_ns, namespace = self._engine.now_ns, name.namespace
        try:
            own_name = self._catalog.own_name(name)
            version = await self._changes.run_alone(own_name, change, ends_with_caller=lambda: True)
        except HeadgateError:
            self.figures.failed(namespace, operation)
            raise
        self.figures.done(namespace, operation, self._engine.now_ns - began_ns)
        return version

    def get(self, name: TopicName, version: int | None = None) -> SchemaRow | None:
        """A version of a topic's schema, by default the latest; None if it does not exist."""
        self.figures.done(name.namespace, SchemaOperation.GET, 0)
        return self._catalog.schema(name, version)

    async def encoded(self, name: TopicName, row: SchemaRow) -> bytes:
        """The message ``Schema`` of a version; many properties are encoded in slices."""
        known = self._encoded.known(name, row)
        if known is not None:
            return known
        steps = self._encoded.encode(name, row)
        if len(row.properties) > PIECE_PROPERTIES:
            return await self._in_slices(name, steps)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast(bytes, end.value)

    # -- the admin API ---------------------------------------------------------------------

    async def add(
        self, name: TopicName, schema: Definition, check: Callable[[], None] = lambda: None
    ) -> int:
        """Add a definition, whatever clients may; the topic need not exist. Returns its version.
        ``check`` is that of :meth:`version_for_producer`.

        Raises:
            IncompatibleSchemaError: the versions that the topic has do not allow it.
            InvalidSchemaError: the definition is not well formed.
            RefusalError: 404 without the namespace.
            StorageError: it could not be stored.
        """

        async def add() -> int:
            check()
            return await self._add(name, schema, may_add=True, needs_topic=False)

        return await self._change(name, SchemaOperation.PUT, add)

    async def find_version(self, name: TopicName, schema: Definition) -> int:
        """The version of a definition, or :data:`UNKNOWN_VERSION`.

        Raises:
            IncompatibleSchemaError: it is too large, or has too many properties.
            InvalidSchemaError: the definition is not well formed.
        """
        _check_size(schema)
        found = await self._in_slices(name, self._index.find(name, schema))
        return UNKNOWN_VERSION if found is None else found

    async def check_compatible(self, name: TopicName, schema: Definition) -> CompatibilityStrategy:
        """Check that a definition could be added; returns the strategy in force.

        Raises:
            IncompatibleSchemaError: it could not.
            InvalidSchemaError: the definition is not well formed.
        """
        strategy = self._rules.of_topic(name).strategy
        if await self.find_version(name, schema) == UNKNOWN_VERSION:
            why = await self._verdict(name, schema, self._compared(name, strategy), strategy)
            if why:
                raise IncompatibleSchemaError(why)
        return strategy

    async def delete(
        self, name: TopicName, *, force: bool, check: Callable[[], None] = lambda: None
    ) -> int:
        """Delete all versions of a topic's schema. Returns the version that stands for the
        deletion; with ``force``, which also forgets the numbers, the last one. ``check`` is that of
        :meth:`version_for_producer`.

        Raises:
            StorageError: it could not be stored.
        """
        delete = partial(self._delete, name, force=force, check=check)
        return await self._change(name, SchemaOperation.DELETE, delete)

    async def _delete(self, name: TopicName, *, force: bool, check: Callable[[], None]) -> int:
        await self._writer.when_earlier_done()
        self._begin_turn()
        check()
        latest = self._catalog.latest_schema(name)
        if latest is None:
            return UNKNOWN_VERSION
        if latest.is_deleted and not force:
            return latest.version
        change = self._catalog.plan_delete_schema(
            name, latest, force=force, now_ms=self._engine.now_ms
        )
        await self._writer.commit(change)
        self._begin_turn()
        deleted = self._catalog.latest_schema(name)
        return latest.version if deleted is None else deleted.version

    # -- both ------------------------------------------------------------------------------

    async def _add(
        self, name: TopicName, schema: Definition, *, may_add: bool, needs_topic: bool
    ) -> int:
        """The version of a definition; a new one is added. Runs alone for its topic."""
        size_bytes = schema_bytes(schema.data, schema.properties)
        for _ in range(TRIES):
            latest = self._catalog.latest_schema(name)
            version = await self.find_version(name, schema)
            if version != UNKNOWN_VERSION:
                return version
            if not may_add:
                raise IncompatibleSchemaError(
                    "Schema not found and schema auto updating is disabled."
                )
            strategy = self._rules.of_topic(name).strategy
            why = await self._verdict(name, schema, self._compared(name, strategy), strategy)
            if self._catalog.latest_schema(name) is not latest:
                continue
            if why:
                raise IncompatibleSchemaError(why)
            self._check_room(name, latest, size_bytes)
            try:
                return await self._store(name, schema, latest, needs_topic=needs_topic)
            except RefusalError as refusal:
                if refusal.status == 404 and needs_topic:
                    raise TopicNotFoundError(name) from refusal
                if refusal.status != 409:
                    raise
            await self._writer.when_earlier_done()  # until another change is stored or abandoned
            self._begin_turn()
        raise conflict(f"The schema of {name} changes all the time: try again")

    async def _store(
        self, name: TopicName, schema: Definition, latest: SchemaRow | None, *, needs_topic: bool
    ) -> int:
        row = SchemaRow(
            type=schema.type,
            data=schema.data,
            properties=schema.properties,
            created_ms=self._engine.now_ms,
        )
        change = self._catalog.plan_schema(name, row, latest, needs_topic=needs_topic)
        version = cast(SchemaRow, change.rows[0].after).version
        await self._writer.commit(change)
        self._begin_turn()
        return version

    def _compared(self, name: TopicName, strategy: CompatibilityStrategy) -> list[SchemaRow]:
        """The versions that a new one is compared with."""
        if strategy in TRANSITIVE:
            return self._catalog.schemas(name)
        latest = self._catalog.schema(name)
        return [] if latest is None else [latest]

    def _check_room(self, name: TopicName, latest: SchemaRow | None, size_bytes: int) -> None:
        settings = self._settings
        count = 0 if latest is None or latest.is_deleted else latest.version - latest.first + 1
        if count >= settings.headgateSchemaVersionsPerTopic:
            raise IncompatibleSchemaError(
                f"The schema of {name} has {count} versions: headgateSchemaVersionsPerTopic="
                f"{settings.headgateSchemaVersionsPerTopic} are allowed"
            )
        catalog = self._catalog
        use = SchemaUse(
            of_topic=catalog.topic_schema_bytes[catalog.own_name(name)] if count else 0,
            of_tenant=catalog.tenant_schema_bytes[name.tenant],
            of_all=catalog.schema_bytes,
            tenants_count=len(catalog.tenant_schema_bytes),
        )
        part = catalog.memory_room.part
        check_room(use, size_bytes, settings.headgateSchemaMemoryMB, part)

    async def _verdict(
        self,
        name: TopicName,
        schema: Definition,
        present: list[SchemaRow],
        strategy: CompatibilityStrategy,
        *,
        is_valid: bool = True,
    ) -> str:
        """Why a definition does not go with the versions ``present``; empty if it does. Unless it
        ``is_valid``, it may not be well formed.

        Raises:
            InvalidSchemaError: it is not well formed, or they are too complex to be compared.
        """
        if not present:
            return ""
        why = await self._comparison(name, schema, present, strategy, is_valid=is_valid)
        self.figures.compared(name.namespace, is_compatible=not why)
        return why

    async def _comparison(
        self,
        name: TopicName,
        schema: Definition,
        present: list[SchemaRow],
        strategy: CompatibilityStrategy,
        *,
        is_valid: bool,
    ) -> str:
        """:meth:`_verdict` with at least one version."""
        key = (self._catalog.own_name(name), strategy.value, _digest(schema))
        known = self._verdicts.get(key)
        if known is not None and known[0]() is present[-1]:
            self._verdicts.move_to_end(key)
            return known[1]
        stored = [definition_of(row) for row in present]
        if not is_valid:
            await self._in_slices(name, check_definition(schema))
        why = await self._in_slices(name, incompatibility(stored, schema, strategy))
        why = why[:WHY_CHARACTERS_MAX]
        self._verdicts[key] = (ref(present[-1]), why)
        if len(self._verdicts) > VERDICTS_MAX:
            self._verdicts.popitem(last=False)
        return why

    async def _in_slices(self, name: TopicName, steps: definitions.Steps[T]) -> T:
        """The result of work on definitions, which others interrupt."""
        results: list[T] = []
        errors: list[HeadgateError] = []

        def captured() -> Steps:
            try:
                results.append((yield from steps))
            except HeadgateError as error:
                errors.append(error)
            except RecursionError:  # an internal error here would end the broker
                errors.append(InvalidSchemaError("The definition is nested too deeply"))

        tenant = name.tenant
        async with self._checks.slot(tenant):
            try:
                await self._work.run("checking a schema", JobClass.COMMAND, captured(), tenant)
            except asyncio.CancelledError:
                steps.close()  # its client is gone: the job ends with its next step
                raise
        self._begin_turn()
        if errors:
            # This frame must not keep it: its traceback leads here, and to the decoded definition.
            raise errors.pop()
        return results[0]


def _check_size(schema: Definition) -> None:
    count = len(schema.properties)
    if count > PROPERTIES_MAX:
        raise IncompatibleSchemaError(
            f"The schema has {count} properties: {PROPERTIES_MAX} are allowed"
        )
    size_bytes = schema.size_bytes
    if size_bytes > DEFINITION_BYTES_MAX:
        raise IncompatibleSchemaError(
            f"The schema has {size_bytes} bytes: {DEFINITION_BYTES_MAX} are allowed"
        )


def _digest(schema: Definition) -> bytes:
    found = hashlib.sha256(b"%d " % schema.type)
    found.update(repr(sorted(schema.properties.items())).encode())
    found.update(schema.data)
    return found.digest()


def _is_idle(topic: Topic) -> bool:
    """Whether a topic has no messages, no producers and no consumers but those that take any
    schema, few of them. Only then may a consumer bring its first schema."""
    if topic.producers or topic.log.end > topic.log.first:
        return False
    left = IDLE_CLIENTS_MAX
    for subscription in topic.subscriptions.values():
        left -= len(subscription.consumers) + 1
        if left < 0 or not all(each.takes_any_schema for each in subscription.consumers):
            return False
    return True
