"""Where the limits and quotas of replayed topics are set, and to what, as far as telemetry says.
Pure.

A policy of a topic goes before its namespace's, and that before the broker's setting. So what is
set for a namespace changes nothing for a topic that has a policy of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias

from headgate.flow.limits.precedence import TOPIC_POLICY
from headgate.pipeline.kernels.publish_limits import split_source


class Setting(Enum):
    """What a namespace or a topic may have a policy for; the value is how it is called."""

    PUBLISH = "publish limit"
    SIZE_QUOTA = "size quota"
    TIME_QUOTA = "time quota"


SOURCE_COLUMNS: Final = {
    Setting.PUBLISH: "publish_limit_source",
    Setting.SIZE_QUOTA: "quota_size_source",
    Setting.TIME_QUOTA: "quota_time_source",
}
"""Fields of the record, and columns of ``intervals``, that say where a setting is set."""

LIMIT_COLUMNS: Final = {
    Setting.PUBLISH: ("publish_limit_messages_per_s", "publish_limit_bytes_per_s"),
    Setting.SIZE_QUOTA: ("quota_size_limit_bytes",),
    Setting.TIME_QUOTA: ("quota_time_limit_ns",),
}
"""Fields that have a value where one is in force."""


VALUE_COLUMNS: Final = {
    Setting.PUBLISH: LIMIT_COLUMNS[Setting.PUBLISH],
    Setting.SIZE_QUOTA: (*LIMIT_COLUMNS[Setting.SIZE_QUOTA], "quota_size_policy"),
    Setting.TIME_QUOTA: (*LIMIT_COLUMNS[Setting.TIME_QUOTA], "quota_time_policy"),
}
"""Fields that say what is in force, all None where nothing is."""

IS_ADAPTIVE: Final = "is_adaptive"
"""Column of the rows of :func:`namespaces_of`: whether the controller watched the topic."""

Value: TypeAlias = tuple[float | str | None, ...]
"""What is in force, in the order of :data:`VALUE_COLUMNS`."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Where one setting of the topics of a namespace is set."""

    own: tuple[str, ...] = ()
    """Topics with a policy of their own, in order."""
    others: int = 0
    """Topics that follow their namespace or the broker, or have nothing in force."""
    unknown: int = 0
    """Topics of which telemetry does not say."""
    own_values: Mapping[str, frozenset[Value]] = field(default_factory=dict, compare=False)
    """What is in force on each of ``own``, in all clusters that have a topic of that name."""
    other_values: frozenset[Value] = field(default=frozenset(), compare=False)
    """What is in force on the others."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace with replayed topics."""

    name: str
    """``tenant/namespace``."""
    levels: Mapping[Setting, Levels] = field(default_factory=dict)
    """Those of a setting that is left out are unknown."""
    is_adaptive: bool | None = None
    """Whether the controller watched any of its topics; None: it is not known."""


def known_name(setting: Setting) -> str:
    """Column of the rows of :func:`namespaces_of` that says whether a source is known."""
    return f"{SOURCE_COLUMNS[setting]}_known"


def value_name(setting: Setting) -> str:
    """Column of the rows of :func:`namespaces_of` with the fields :data:`VALUE_COLUMNS`."""
    return f"{SOURCE_COLUMNS[setting]}_value"


def is_settled(row: Mapping[str, Any]) -> bool:
    """Whether a row of :func:`namespaces_of` leaves nothing open that an older one may tell."""
    return all(row[known_name(setting)] for setting in Setting)


def with_older(newer: Mapping[str, Any], older: Mapping[str, Any]) -> dict[str, Any]:
    """A row of :func:`namespaces_of` with what an older one of the topic tells and it does not."""
    row = dict(newer)
    for setting, source in SOURCE_COLUMNS.items():
        if not row[known_name(setting)]:
            names = (source, known_name(setting), value_name(setting))
            row |= {name: older[name] for name in names}
    row[IS_ADAPTIVE] = newer[IS_ADAPTIVE] or older[IS_ADAPTIVE]
    return row


def namespaces_of(topics: Iterable[Mapping[str, Any]]) -> list[Namespace]:
    """The namespaces of topics, in order.

    A row has ``topic``, :data:`IS_ADAPTIVE` and, of each setting, its source column with where the
    topic's was set last, None for nowhere, :func:`known_name`, whether that is known, and
    :func:`value_name`.
    """
    rows: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in topics:
        namespace = str(row["topic"]).partition("://")[2].rpartition("/")[0]
        # Several clusters may have a topic of that name.
        rows.setdefault(namespace, {}).setdefault(row["topic"], []).append(row)
    return [
        Namespace(
            name,
            {setting: _levels(rows[name], setting) for setting in Setting},
            any(row[IS_ADAPTIVE] for topic in rows[name].values() for row in topic),
        )
        for name in sorted(rows)
    ]


def _levels(topics: Mapping[str, list[Mapping[str, Any]]], setting: Setting) -> Levels:
    source = SOURCE_COLUMNS[setting]
    own: dict[str, frozenset[Value]] = {}
    others, unknown = 0, 0
    other_values: set[Value] = set()
    for topic in sorted(topics):
        values = frozenset(_value(row[value_name(setting)], setting) for row in topics[topic])
        if any(TOPIC_POLICY in split_source(row[source] or "") for row in topics[topic]):
            own[topic] = values
        elif all(row[known_name(setting)] for row in topics[topic]):
            others += 1
            other_values |= values
        else:
            unknown += 1
    return Levels(tuple(own), others, unknown, own, frozenset(other_values))


def _value(fields: Mapping[str, Any] | None, setting: Setting) -> Value:
    return tuple(None if fields is None else fields[name] for name in VALUE_COLUMNS[setting])
