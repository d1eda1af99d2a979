"""Finds the version of a schema that equals a definition, without reading all versions again."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final
from weakref import ref

from headgate.base.names import TopicName
from headgate.base.work_units import SCHEMA_BYTES_PER_UNIT
from headgate.metadata.catalog import Catalog
from headgate.metadata.rows import SchemaRow
from headgate.schema.compatibility import check_definition
from headgate.schema.definition import Definition, Steps
from headgate.schema.errors import InvalidSchemaError

INDEXED_MAX: Final = 20_000
"""Versions of all topics that are kept in the index, about 200 bytes each."""


def definition_of(row: SchemaRow) -> Definition:
    """The definition in a row."""
    return Definition(row.type, row.data, row.properties)


@dataclass(slots=True)
class _Indexed:
    """The versions of one topic."""

    latest: ref[SchemaRow]
    """The index keeps no definition in memory that its topic no longer has."""
    version_of: dict[tuple[int, bytes], int] = field(default_factory=dict)
    """The oldest version of each type and fingerprint."""


class VersionIndex:
    """The fingerprints of versions, of the topics that were asked about last."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._topics: OrderedDict[str, _Indexed] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        """Versions in the index."""
        return self._size

    def find(self, topic: TopicName, definition: Definition) -> Steps[int | None]:
        """The version of a topic's schema that equals ``definition``.

        Raises:
            InvalidSchemaError: the definition is not well formed.
        """
        rows = self._catalog.schemas(topic)
        yield 1 + len(rows) // SCHEMA_BYTES_PER_UNIT
        for row in reversed(rows):  # clients mostly bring the same bytes
            if row.type == definition.type and row.data == definition.data:
                return row.version
        fingerprint = yield from check_definition(definition)
        if not rows:
            return None
        indexed = yield from self._indexed(self._catalog.own_name(topic), rows)
        return indexed.version_of.get((definition.type, fingerprint))

    def _indexed(self, name: str, rows: list[SchemaRow]) -> Steps[_Indexed]:
        """The index of a topic with these versions."""
        before = self._topics.get(name)
        known, version_of = 0, {}
        if before is not None:
            # The row of the latest version stays the same object when a version follows it.
            latest = before.latest()
            known = next((i for i, row in enumerate(rows, 1) if row is latest), 0)
            if known and rows[known - 1].first == rows[-1].first:
                version_of = dict(before.version_of)
            else:
                known = 0
        for row in rows[known:]:
            fingerprint = yield from _fingerprint(definition_of(row))
            version_of.setdefault((row.type, fingerprint), row.version)
        indexed = _Indexed(ref(rows[-1]), version_of)
        self._keep(name, indexed)
        return indexed

    def _keep(self, name: str, indexed: _Indexed) -> None:
        replaced = self._topics.pop(name, None)
        self._topics[name] = indexed
        self._size += len(indexed.version_of) - (len(replaced.version_of) if replaced else 0)
        while self._size > INDEXED_MAX and len(self._topics) > 1:
            _, dropped = self._topics.popitem(last=False)
            self._size -= len(dropped.version_of)


def _fingerprint(stored: Definition) -> Steps[bytes]:
    """The fingerprint of a stored version. Earlier releases stored what they did not check."""
    try:
        return (yield from check_definition(stored))
    except InvalidSchemaError:
        return hashlib.sha256(stored.data).digest()
