"""The sources of the limits and quotas of replayed topics, from telemetry. Pure.

A topic policy overrides the namespace's policy, which overrides the broker's setting. So a
namespace policy does not affect a topic with its own policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias

from headgate.flow.limits.precedence import TOPIC_POLICY
from headgate.pipeline.kernels.publish_limits import split_source


class Setting(Enum):
    """A kind of policy of a namespace or topic; the value is its name in text."""

    PUBLISH = "publish limit"
    SIZE_QUOTA = "size quota"
    TIME_QUOTA = "time quota"


SOURCE_COLUMNS: Final = {
    Setting.PUBLISH: "publish_limit_source",
    Setting.SIZE_QUOTA: "quota_size_source",
    Setting.TIME_QUOTA: "quota_time_source",
}
"""Fields of the record, and columns of ``intervals``, with the source of each setting."""

LIMIT_COLUMNS: Final = {
    Setting.PUBLISH: ("publish_limit_messages_per_s", "publish_limit_bytes_per_s"),
    Setting.SIZE_QUOTA: ("quota_size_limit_bytes",),
    Setting.TIME_QUOTA: ("quota_time_limit_ns",),
}
"""Fields that have a value if a limit is in force."""


VALUE_COLUMNS: Final = {
    Setting.PUBLISH: LIMIT_COLUMNS[Setting.PUBLISH],
    Setting.SIZE_QUOTA: (*LIMIT_COLUMNS[Setting.SIZE_QUOTA], "quota_size_policy"),
    Setting.TIME_QUOTA: (*LIMIT_COLUMNS[Setting.TIME_QUOTA], "quota_time_policy"),
}
"""Fields with the value in force, all None without one."""

IS_ADAPTIVE: Final = "is_adaptive"
"""Column of the rows of :func:`namespaces_of`: whether the controller watched the topic."""

Value: TypeAlias = tuple[float | str | None, ...]
"""The value in force, in the order of :data:`VALUE_COLUMNS`."""


@dataclass(frozen=True, slots=True)
class LimitSources:
    """The sources of one setting, over the topics of a namespace."""

    own: tuple[str, ...] = ()
    """Topics with a topic policy, in order."""
    others: int = 0
    """Topics that follow their namespace or the broker, or have no limit in force."""
    unknown: int = 0
    """Topics whose source is not in the telemetry."""
    own_values: Mapping[str, frozenset[Value]] = field(default_factory=dict, compare=False)
    """The values in force on each of ``own``, over all clusters with a topic of that name."""
    other_values: frozenset[Value] = field(default=frozenset(), compare=False)
    """The values in force on the others."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace with replayed topics."""

    name: str
    """``tenant/namespace``."""
    levels: Mapping[Setting, LimitSources] = field(default_factory=dict)
    """The sources by setting; those of an absent setting are unknown."""
    is_adaptive: bool | None = None
    """Whether the controller watched any of its topics; None: unknown."""


def known_name(setting: Setting) -> str:
    """Column of the rows of :func:`namespaces_of`: whether the source is known."""
    return f"{SOURCE_COLUMNS[setting]}_known"


def value_name(setting: Setting) -> str:
    """Column of the rows of :func:`namespaces_of` with the fields :data:`VALUE_COLUMNS`."""
    return f"{SOURCE_COLUMNS[setting]}_value"


def is_complete(row: Mapping[str, Any]) -> bool:
    """Whether a row of :func:`namespaces_of` has all sources, so that no older row is needed."""
    return all(row[known_name(setting)] for setting in Setting)


def with_older(newer: Mapping[str, Any], older: Mapping[str, Any]) -> dict[str, Any]:
    """A row of :func:`namespaces_of`, completed from an older row of the same topic."""
    row = dict(newer)
    for setting, source in SOURCE_COLUMNS.items():
        if not row[known_name(setting)]:
            names = (source, known_name(setting), value_name(setting))
            row |= {name: older[name] for name in names}
    row[IS_ADAPTIVE] = newer[IS_ADAPTIVE] or older[IS_ADAPTIVE]
    return row


def namespaces_of(topics: Iterable[Mapping[str, Any]]) -> list[Namespace]:
    """The namespaces of topics, in order.

    A row has ``topic``, :data:`IS_ADAPTIVE` and, for each setting, the source column (the newest
    source of the topic, None without one), :func:`known_name` and :func:`value_name`.
    """
    rows: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in topics:
        namespace = str(row["topic"]).partition("://")[2].rpartition("/")[0]
        # Several clusters may have a topic of that name.
        rows.setdefault(namespace, {}).setdefault(row["topic"], []).append(row)
    return [
        Namespace(
            name,
            {setting: _limit_sources(rows[name], setting) for setting in Setting},
            any(row[IS_ADAPTIVE] for topic in rows[name].values() for row in topic),
        )
        for name in sorted(rows)
    ]


def _limit_sources(topics: Mapping[str, list[Mapping[str, Any]]], setting: Setting) -> LimitSources:
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
    return LimitSources(tuple(own), others, unknown, own, frozenset(other_values))


def _value(fields: Mapping[str, Any] | None, setting: Setting) -> Value:
    return tuple(None if fields is None else fields[name] for name in VALUE_COLUMNS[setting])
