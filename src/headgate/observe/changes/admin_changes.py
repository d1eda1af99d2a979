"""Changes that the admin API carried out: each concerns a topic, a namespace or the broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headgate.base.audit_entry import AuditEntry, ValueChange
from headgate.base.texts import printable
from headgate.base.units import NS_PER_MS
from headgate.explain.change_log import CHANGES_MAX, ChangeLog
from headgate.explain.changes import BROKER, POLICY, SETTING, SUBSCRIPTION, TOPIC, PlainChange
from headgate.flow.sentences.changes import (
    REPORTED,
    change_clause,
    policy_name,
    value_clause,
)
from headgate.observe.changes.policy_values import value_text

SUBJECT_MAX: Final = 60
"""Of one topic or namespace, or of the broker."""

ROLE_MAX: Final = 80
NAME_MAX: Final = 200

OF_BROKER: Final = ""
"""The subject of what concerns all topics."""

_SETTINGS: Final = (
    "adaptivePublisher", "backlogQuota", "dispatch", "maxPublishRate", "maxUnackedMessages",
    "publisherThrottling", "brokerPublisherThrottling", "ttlDuration", "headgateMaxParked",
)  # fmt: skip
"""How the names of settings begin that hold or take messages of topics."""

_TOPIC_CLAUSES: Final = {
    "topic.create": "the topic was created",
    "topic.update": "the number of partitions was raised",
    "topic.delete": "the topic was deleted",
    "topic.unload": "the topic was unloaded",
    "topic.truncate": "the topic was truncated",
    "topic.terminate": "the topic was terminated",
    "topic.accept-damage": "damage of the topic was accepted",
}
_NAMESPACE_CLAUSES: Final = {
    "namespace.bundles.change": "the namespace was unloaded",
    "namespace.clear-backlog": "backlogs of the namespace were cleared",
    "namespace.unsubscribe": "a subscription was deleted on all topics of the namespace",
}
_SUBSCRIPTION_CLAUSES: Final = {
    "subscription.create": "subscription {name} was created",
    "subscription.delete": "subscription {name} was deleted",
    "subscription.skip": "messages of {name} were skipped",
    "subscription.reset": "the cursor of {name} was reset",
    "subscription.expire": "messages of {name} were expired",
}


class AdminChanges:
    """Keeps the changes of one broker."""

    def __init__(self) -> None:
        self.log: ChangeLog[PlainChange] = ChangeLog(CHANGES_MAX, SUBJECT_MAX)
        """By the full name of a topic as the request named it, by namespace, or
        :data:`OF_BROKER`."""

    def changed(self, entry: AuditEntry, wall_ns: int) -> None:
        """The broker carried a change out at ``wall_ns``, of the wall clock."""
        at_ms = wall_ns // NS_PER_MS
        for kind, text, plain in _clauses(entry):
            is_topic = "://" in entry.resource
            subject = OF_BROKER if kind == SETTING else entry.resource
            level = "topic" if is_topic else "broker" if subject == OF_BROKER else "namespace"
            subscription = entry.subscription[:NAME_MAX]
            change = PlainChange(
                at_ms,
                kind,
                "subscription" if subscription and kind == SUBSCRIPTION else level,
                text,
                subscription,
                _role(entry),
                plain,
            )
            self.log.add(subject, change)


def _role(entry: AuditEntry) -> str:
    """Who asked; of a client behind a proxy the client's."""
    identity = entry.identity
    return printable((identity.original_role or identity.role)[:ROLE_MAX])


def _clauses(entry: AuditEntry) -> Iterator[tuple[str, str, str]]:
    """The changes of one request: kind, text, and a text without values if not everybody may see
    them who may ask about the topic. The admin API gives policies to administrators alone."""
    is_topic = "://" in entry.resource
    for value in entry.values:
        if entry.operation.startswith("settings."):
            if value.name.startswith(_SETTINGS):
                yield SETTING, *_value_clauses(f"the setting {value.name}", value)
        else:
            name = policy_name(
                value.name,
                printable(value.key[:NAME_MAX]),
                "" if is_topic else printable(entry.resource[:NAME_MAX]),
            )
            if value_text(value.name, value.before) != value_text(value.name, value.after):
                clause, plain = _value_clauses(name, value)
                yield POLICY, clause, "" if value.name in REPORTED else plain
    texts = _TOPIC_CLAUSES if is_topic else _NAMESPACE_CLAUSES
    if text := texts.get(entry.operation):
        yield TOPIC, text, ""
    elif is_topic and (text := _SUBSCRIPTION_CLAUSES.get(entry.operation)):
        yield SUBSCRIPTION, text.format(name=printable(entry.subscription[:NAME_MAX])), ""


def _value_clauses(name: str, value: ValueChange) -> tuple[str, str]:
    before, after = value_text(value.name, value.before), value_text(value.name, value.after)
    return value_clause(name, before, after), change_clause(name, before, after)


def started(at_ms: int) -> PlainChange:
    """The start of the broker."""
    return PlainChange(at_ms, BROKER, "broker", "the broker was started")
