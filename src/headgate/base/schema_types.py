"""The types of schemas and the strategies of compatibility, by Pulsar's names and numbers."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class SchemaType(IntEnum):
    """``Schema.Type`` of the protocol."""

    NONE = 0
    STRING = 1
    JSON = 2
    PROTOBUF = 3
    AVRO = 4
    BOOL = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FLOAT = 10
    DOUBLE = 11
    DATE = 12
    TIME = 13
    TIMESTAMP = 14
    KEY_VALUE = 15
    INSTANT = 16
    LOCAL_DATE = 17
    LOCAL_TIME = 18
    LOCAL_DATE_TIME = 19
    PROTOBUF_NATIVE = 20
    AUTO_CONSUME = 21
    EXTERNAL = 22


_NAMES_IN_JAVA: Final = {SchemaType.BOOL: "BOOLEAN"}
"""The protocol and the admin API name one type differently."""

NAMES: Final[dict[int, str]] = {
    int(each): _NAMES_IN_JAVA.get(each, each.name) for each in SchemaType
}
"""The name of each type in the admin API and in the properties of KeyValue schemas."""

TYPES: Final[dict[str, SchemaType]] = {
    **{NAMES[each]: each for each in SchemaType},
    "BYTES": SchemaType.NONE,
}
"""The type of each such name. The protocol has no number for BYTES."""

IN_AVRO: Final = frozenset((SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF))
"""The types whose definition is an Avro schema."""

PRIMITIVES: Final = frozenset(
    each
    for each in SchemaType
    if SchemaType.BOOL <= each <= SchemaType.TIMESTAMP
    or SchemaType.INSTANT <= each <= SchemaType.LOCAL_DATE_TIME
)
"""The types that have no definition beside their type."""


def type_name(number: int) -> str:
    """The name of a type; its number if it has none."""
    return NAMES.get(number, str(number))


class CompatibilityStrategy(StrEnum):
    """Which definitions may follow those that a topic has."""

    UNDEFINED = "UNDEFINED"
    """The next level decides; the broker's own is then FULL."""
    ALWAYS_INCOMPATIBLE = "ALWAYS_INCOMPATIBLE"
    ALWAYS_COMPATIBLE = "ALWAYS_COMPATIBLE"
    BACKWARD = "BACKWARD"
    """The new definition reads the data of the latest one."""
    FORWARD = "FORWARD"
    """The latest definition reads the data of the new one."""
    FULL = "FULL"
    """Both."""
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    """The new definition reads the data of all earlier ones; so on."""
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


class AutoUpdateStrategy(StrEnum):
    """The older names of strategies, which the admin API still takes for namespaces."""

    AUTO_UPDATE_DISABLED = "AutoUpdateDisabled"
    BACKWARD = "Backward"
    FORWARD = "Forward"
    FULL = "Full"
    ALWAYS_COMPATIBLE = "AlwaysCompatible"
    BACKWARD_TRANSITIVE = "BackwardTransitive"
    FORWARD_TRANSITIVE = "ForwardTransitive"
    FULL_TRANSITIVE = "FullTransitive"

    @property
    def strategy(self) -> CompatibilityStrategy:
        """The strategy that it stands for."""
        if self is AutoUpdateStrategy.AUTO_UPDATE_DISABLED:
            return CompatibilityStrategy.ALWAYS_INCOMPATIBLE
        return CompatibilityStrategy[self.name]
