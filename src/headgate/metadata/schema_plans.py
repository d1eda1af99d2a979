"""Changes of the schemas of topics, validated and staged.

The row of the latest version lies under the topic's name, and each earlier version under that name
and its number. So a new version writes two rows, however many there are. A deletion leaves a row
without a definition, so that no number is given twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

import msgspec

from headgate.base.names import NamespaceName, TopicName
from headgate.metadata.errors import conflict, not_allowed, not_found
from headgate.metadata.rows import Kind, SchemaRow
from headgate.metadata.staged_rows import (
    RowValues,
    own_name,
    staged_open_namespace,
    topic_exists,
)
from headgate.metadata.state import Change, RowState

TAKEN_OVER_MAX: Final = 4_096
"""Most versions of schemas of topics that become partitions of a new one: one for each partition.
They change at once."""


class SchemaPlans:
    """Plans changes of schemas."""

    def __init__(self, state: RowState) -> None:
        self._state = state

    def plan_schema(
        self,
        topic: TopicName,
        schema: SchemaRow,
        after: SchemaRow | None,
        *,
        needs_topic: bool = True,
    ) -> Change:
        """Add a version after ``after``, the latest row that the caller knows. Its number follows
        from that. Unless it ``needs_topic``, the topic may be created later.

        Raises:
            RefusalError: 404 without the namespace, or without the topic that it needs; 409 if the
                latest row is another one.
        """
        staged_open_namespace(self._state, topic.namespace)
        if needs_topic and not topic_exists(self._state, topic.full):
            raise not_found(f"Topic {topic} not found")
        name = own_name(topic, self._state.staged)
        self._check_latest(name, after)
        rows: RowValues = []
        number = first = 0
        if after is not None:
            number = after.version + 1
            first = number if after.is_deleted else after.first
            if not after.is_deleted:
                rows.append((Kind.SCHEMA_VERSION, version_key(name, after.version), after))
        row = msgspec.structs.replace(schema, version=number, first=first)
        return self._state.stage([(Kind.SCHEMA, name, row), *rows])

    def plan_delete_schema(
        self, topic: TopicName, after: SchemaRow, *, force: bool, now_ms: int
    ) -> Change:
        """Delete all versions up to ``after``, the latest row that the caller knows. ``force`` also
        forgets their numbers.

        Raises:
            RefusalError: 409 if the latest row is another one.
        """
        name = own_name(topic, self._state.staged)
        self._check_latest(name, after)
        number = after.version if after.is_deleted else after.version + 1
        row = SchemaRow(
            type=0, data=b"", version=number, first=number, created_ms=now_ms, is_deleted=True
        )
        earlier: RowValues = [(Kind.SCHEMA_VERSION, key, None) for key in earlier_keys(name, after)]
        return self._state.stage([(Kind.SCHEMA, name, None if force else row), *earlier])

    def _check_latest(self, name: str, after: SchemaRow | None) -> None:
        if self._state.staged(Kind.SCHEMA, name) != after:
            raise conflict(f"The schema of {name} has changed meanwhile")


def version_key(name: str, version: int) -> str:
    """The key of an earlier version."""
    return f"{name}/{version}"


def earlier_keys(name: str, latest: SchemaRow) -> Iterator[str]:
    """The keys of the versions before the latest."""
    return (version_key(name, version) for version in range(latest.first, latest.version))


def removed_schemas(state: RowState, name: str) -> RowValues:
    """Rows that remove all versions of the schema that lies under a name."""
    latest = cast(SchemaRow | None, state.staged(Kind.SCHEMA, name))
    if latest is None:
        return []
    earlier: RowValues = [(Kind.SCHEMA_VERSION, key, None) for key in earlier_keys(name, latest)]
    return [(Kind.SCHEMA, name, None), *earlier]


def schemas_taken_over(state: RowState, name: str, parts: list[str]) -> RowValues:
    """Rows that move the schema of the first of ``parts`` that has one to ``name``, a new
    partitioned topic, unless that has one; those of the others are removed.

    Raises:
        RefusalError: 412, they have too many versions together.
    """
    owners = [part for part in parts if state.staged(Kind.SCHEMA, part) is not None]
    latest_rows = (cast(SchemaRow, state.staged(Kind.SCHEMA, owner)) for owner in owners)
    count = sum(latest.version - latest.first + 1 for latest in latest_rows)
    if count > TAKEN_OVER_MAX:
        raise not_allowed(
            f"The schemas of topics that would be partitions of {name} have {count} versions: "
            f"{TAKEN_OVER_MAX} are allowed; delete some of them"
        )
    rows: RowValues = []
    if owners and state.staged(Kind.SCHEMA, name) is None:
        latest = cast(SchemaRow, state.staged(Kind.SCHEMA, owners[0]))
        rows.append((Kind.SCHEMA, name, latest))
        for key in earlier_keys(owners[0], latest):
            moved = state.staged(Kind.SCHEMA_VERSION, key)
            rows.append((Kind.SCHEMA_VERSION, name + key.removeprefix(owners[0]), moved))
    for owner in owners:
        rows += removed_schemas(state, owner)
    return rows


def schemas_of_namespace(state: RowState, namespace: NamespaceName) -> RowValues:
    """Rows that remove the schemas in a namespace: those of names without a topic."""
    rows: RowValues = []
    for domain in ("persistent", "non-persistent"):
        for name in list(state.staged_children(Kind.SCHEMA, f"{domain}://{namespace}")):
            rows += removed_schemas(state, name)
    return rows
