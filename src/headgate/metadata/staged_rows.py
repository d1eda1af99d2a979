"""Lookups of namespaces and topics that plans and reads share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from headgate.base.names import NamespaceName, TopicName
from headgate.metadata.errors import not_found
from headgate.metadata.rows import Kind, NamespaceRow, Row
from headgate.metadata.state import RowState

RowValues = list[tuple[Kind, str, Row | None]]
"""Kind, key and new value of rows to stage; ``None`` removes a row."""

NO_PROPERTIES: Mapping[str, str] = {}
"""The properties of a new topic or namespace without any."""


def staged_namespace(state: RowState, name: NamespaceName) -> NamespaceRow:
    """The namespace in the staged view.

    Raises:
        RefusalError: 404 if it does not exist.
    """
    row = state.staged(Kind.NAMESPACE, str(name))
    if row is None:
        raise not_found("Namespace not found")
    return cast(NamespaceRow, row)


def staged_open_namespace(state: RowState, name: NamespaceName) -> NamespaceRow:
    """The namespace in the staged view, if topics may be created in it.

    Raises:
        RefusalError: 404 if it does not exist, or is being deleted.
    """
    row = staged_namespace(state, name)
    if row.deleted:
        raise not_found(f"Namespace {name} is being deleted")
    return row


def topic_exists(state: RowState, full_name: str) -> bool:
    """Whether the staged view has a topic of this name, partitioned or not."""
    return (
        state.staged(Kind.TOPIC, full_name) is not None
        or state.staged(Kind.PARTITIONED, full_name) is not None
    )


def own_name(topic: TopicName, look: Callable[[Kind, str], Row | None]) -> str:
    """The name under which a topic's policies and schema are stored, in the view of ``look``.

    For a partition, it is the name of the partitioned topic. A topic that is only named like a
    partition has its own.
    """
    if topic.partition < 0:
        return topic.full
    base = topic.base.full
    return base if look(Kind.PARTITIONED, base) is not None else topic.full
