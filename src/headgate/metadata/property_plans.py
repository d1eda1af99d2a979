"""Changes of the properties of namespaces and topics, validated and staged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, cast

import msgspec

from headgate.base.names import NamespaceName, TopicName
from headgate.base.units import KIB
from headgate.metadata.errors import not_allowed, not_found
from headgate.metadata.rows import Kind, PartitionedRow, TopicRow
from headgate.metadata.staged_rows import NO_PROPERTIES, staged_namespace
from headgate.metadata.state import Change, RowState

PROPERTIES_BYTES_MAX: Final = 64 * KIB
"""Most bytes of the keys and values that one namespace or topic keeps. Pulsar has no limit; each
set of properties is in memory as long as its owner exists."""

PROPERTY_BYTES: Final = 64
"""What a property counts beside its key and value: short ones take more for themselves, and each
change copies all of them. So there are a thousand at most."""


class PropertyPlans:
    """Plans changes of properties."""

    def __init__(self, state: RowState) -> None:
        self._state = state

    def plan_namespace_properties(
        self, name: NamespaceName, added: Mapping[str, str], removed: Collection[str] | None = ()
    ) -> Change:
        """Add or replace properties of a namespace, after removing some (``None``: all).

        Raises:
            RefusalError: 404 without the namespace, 412 if there are too many bytes.
        """
        row = staged_namespace(self._state, name)
        properties = _changed(row.properties, added, removed)
        changed = msgspec.structs.replace(row, properties=properties)
        return self._state.stage([(Kind.NAMESPACE, str(name), changed)])

    def plan_topic_properties(
        self,
        topic: TopicName,
        added: Mapping[str, str] = NO_PROPERTIES,
        removed: Collection[str] = (),
    ) -> Change:
        """Add or replace properties of a topic, partitioned or not, or of one partition, after
        removing some.

        Raises:
            RefusalError: 404 without the topic, 412 if there are too many bytes.
        """
        for kind in (Kind.PARTITIONED, Kind.TOPIC):
            row = cast(PartitionedRow | TopicRow | None, self._state.staged(kind, topic.full))
            if row is not None:
                properties = _changed(row.properties, added, removed)
                changed = msgspec.structs.replace(row, properties=properties)
                return self._state.stage([(kind, topic.full, changed)])
        raise not_found(f"Topic {topic} not found")


def _changed(
    present: Mapping[str, str], added: Mapping[str, str], removed: Collection[str] | None
) -> dict[str, str]:
    kept = {} if removed is None else {k: v for k, v in present.items() if k not in removed}
    changed = {**kept, **added}
    return checked_properties(changed) if added else changed


def checked_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """``properties`` if a namespace or topic may have them.

    Raises:
        RefusalError: 412 if there are too many bytes.
    """
    size_bytes = PROPERTY_BYTES * len(properties)
    if size_bytes <= PROPERTIES_BYTES_MAX:
        size_bytes += sum(len(k.encode()) + len(v.encode()) for k, v in properties.items())
    if size_bytes > PROPERTIES_BYTES_MAX:
        raise not_allowed(
            f"The properties would have {size_bytes} bytes or more, {PROPERTY_BYTES} for each "
            f"beside its own: {PROPERTIES_BYTES_MAX} are allowed"
        )
    return dict(properties)
