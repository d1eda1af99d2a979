"""A schema as a client sends it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from headgate.base.units import KIB

T = TypeVar("T")

Steps = Generator[int, None, T]
"""Work that yields the units that it used since the last time, and returns its result."""

DEFINITION_BYTES_MAX: Final = 128 * KIB
"""Largest definition, with its properties. The broker stores it as long as its topic."""

PROPERTIES_MAX: Final = 1_000
"""Most properties of a definition, as many as a command of the protocol may have."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a schema."""

    type: int
    """``Schema.Type`` of the protocol."""
    data: bytes = b""
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Bytes that the definition and its properties take."""
        return len(self.data) + sum(len(k) + len(v) for k, v in self.properties.items())
