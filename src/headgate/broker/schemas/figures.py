"""What was asked of the registry since the start, by namespace: figures for /metrics.

A namespace has an entry once something was asked about its topics. Entries of namespaces that are
gone leave when a new one comes, so there are never more than about twice the namespaces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from headgate.base.names import NamespaceName


class SchemaOperation(Enum):
    """What is done with a schema. The values are those in the names of Pulsar's series."""

    GET = "get"
    PUT = "put"
    DELETE = "del"


@dataclass(slots=True)
class OperationFigures:
    """One operation in one namespace."""

    done: int = 0
    took_ns: int = 0
    """Time that those took together."""
    failed: int = 0


@dataclass(slots=True)
class NamespaceFigures:
    """The schemas of one namespace."""

    operations: dict[SchemaOperation, OperationFigures] = field(
        default_factory=lambda: {each: OperationFigures() for each in SchemaOperation}
    )
    compatible: int = 0
    """Comparisons with the versions of a topic that it passed."""
    incompatible: int = 0


_ROOM: Final = 64
"""Namespaces that are noted before those that are gone are looked for."""


class SchemaFigures:
    """The figures of one broker."""

    def __init__(self, exists: Callable[[NamespaceName], bool]) -> None:
        """``exists`` tells whether there is a namespace."""
        self._exists = exists
        self._known: dict[NamespaceName, NamespaceFigures] = {}
        self._room = _ROOM

    def done(self, namespace: NamespaceName, operation: SchemaOperation, took_ns: int) -> None:
        """An operation succeeded."""
        if (found := self._of(namespace)) is not None:
            figures = found.operations[operation]
            figures.done += 1
            figures.took_ns += took_ns

    def failed(self, namespace: NamespaceName, operation: SchemaOperation) -> None:
        """An operation failed, or was refused."""
        if (found := self._of(namespace)) is not None:
            found.operations[operation].failed += 1

    def compared(self, namespace: NamespaceName, *, is_compatible: bool) -> None:
        """A definition was compared with the versions of a topic."""
        if (found := self._of(namespace)) is not None:
            found.compatible += is_compatible
            found.incompatible += not is_compatible

    def by_namespace(self) -> list[tuple[NamespaceName, NamespaceFigures]]:
        """The figures of all namespaces that exist."""
        return [(name, each) for name, each in self._known.items() if self._exists(name)]

    def _of(self, namespace: NamespaceName) -> NamespaceFigures | None:
        """The entry of a namespace; None if there is no such namespace."""
        found = self._known.get(namespace)
        if found is None and self._exists(namespace):
            if len(self._known) >= self._room:
                self._known = dict(self.by_namespace())
                self._room = max(_ROOM, 2 * len(self._known))
            found = self._known[namespace] = NamespaceFigures()
        return found
