"""The schemas of answers to GET_SCHEMA, encoded once for each version that clients ask for.

A definition may have many properties, and a client asks for it with a few bytes. So it is encoded
in slices, and a bounded number of bytes is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import Final
from weakref import ref

from headgate.base.names import TopicName, parse_topic
from headgate.base.units import MIB
from headgate.base.work_units import SCHEMA_PROPERTIES_PER_UNIT
from headgate.metadata.catalog import Catalog
from headgate.metadata.rows import SchemaRow
from headgate.schema.definition import Steps
from headgate.wire.messages import Schema

KEPT_BYTES_MAX: Final = 4 * MIB
"""Encoded schemas that are kept, those that were asked for last."""

PIECE_PROPERTIES: Final = 16 * SCHEMA_PROPERTIES_PER_UNIT
"""Properties that are encoded without a pause."""


class EncodedSchemas:
    """Messages ``Schema``, encoded."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._kept: OrderedDict[tuple[str, int], tuple[ref[SchemaRow], bytes]] = OrderedDict()
        """By the name that has the schema and the version. Nothing of a row that its topic no
        longer has is returned."""
        self._kept_bytes = 0

    def kept(self, name: TopicName, row: SchemaRow) -> bytes | None:
        """The schema in a row, if it is kept."""
        key = (self._catalog.own_name(name), row.version)
        found = self._kept.get(key)
        if found is None or found[0]() is not row:
            return None
        self._kept.move_to_end(key)
        return found[1]

    def encode(self, name: TopicName, row: SchemaRow) -> Steps[bytes]:
        """Encode the schema in a row, and keep it."""
        kept = self.kept(name, row)
        if kept is not None:
            return kept
        # The name is the topic's, as in Pulsar: clients call one definition differently.
        own_name = self._catalog.own_name(name)
        base = parse_topic(own_name)
        head = Schema(name=f"{base.namespace}/{base.local}", type=row.type, schema_data=row.data)
        parts = [head.SerializeToString()]
        properties = iter(row.properties.items())
        while piece := list(islice(properties, PIECE_PROPERTIES)):
            some = Schema()
            for key, value in piece:
                some.properties.add(key=key, value=value)
            parts.append(some.SerializePartialToString())
            yield -(-len(piece) // SCHEMA_PROPERTIES_PER_UNIT)
        encoded = b"".join(parts)
        self._keep((own_name, row.version), row, encoded)
        return encoded

    def _keep(self, key: tuple[str, int], row: SchemaRow, encoded: bytes) -> None:
        replaced = self._kept.pop(key, None)
        self._kept_bytes += len(encoded) - (len(replaced[1]) if replaced else 0)
        self._kept[key] = (ref(row), encoded)
        while self._kept_bytes > KEPT_BYTES_MAX:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._kept_bytes -= len(dropped)
