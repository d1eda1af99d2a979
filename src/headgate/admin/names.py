"""Resolves the names in a path, or refuses them with Pulsar's statuses and texts."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakValueDictionary

from headgate.admin.routing import Call
from headgate.base.names import (
    DOMAINS,
    PERSISTENT,
    InvalidNameError,
    NamespaceName,
    TopicName,
    check_entity,
    check_subscription,
    make_topic,
)
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError, conflict, not_allowed, not_found
from headgate.metadata.rows import NamespaceRow, PartitionedRow


def tenant_name(call: Call) -> str:
    """The tenant that the path names.

    Raises:
        RefusalError: 412.
    """
    try:
        return check_entity("tenant", call.params["tenant"])
    except InvalidNameError as error:
        raise not_allowed("Tenant name is not valid") from error


def namespace_name(call: Call) -> NamespaceName:
    """The namespace that the path names.

    Raises:
        RefusalError: 412.
    """
    tenant = tenant_name(call)
    try:
        return NamespaceName(tenant, check_entity("namespace", call.params["namespace"]))
    except InvalidNameError as error:
        raise not_allowed("Namespace name is not valid") from error


def refuse_resolved(name: str, what: str) -> None:
    """Refuse a new tenant or namespace (``what``) whose name browsers and proxies resolve in the
    path of a URL: a request about what is in it would be one about something else.

    Raises:
        RefusalError: 412.
    """
    if name in (".", ".."):
        raise not_allowed(f"{what} name is not valid")


def topic_name(call: Call) -> TopicName:
    """The topic that the path names; persistent unless the path has a domain.

    Raises:
        RefusalError: 412 for a bad name, 404 for an unknown domain.
    """
    domain = call.params.get("domain", PERSISTENT)
    if domain not in DOMAINS:
        raise not_found(f"No such topic domain: {domain[:80]}")
    namespace = namespace_name(call)
    try:
        return make_topic(domain, namespace, call.params["topic"])
    except InvalidNameError as error:
        raise not_allowed("Topic name is not valid") from error


def subscription_name(call: Call) -> str:
    """The subscription that the path names.

    Raises:
        RefusalError: 412.
    """
    try:
        return check_subscription(call.params["subscription"])
    except InvalidNameError as error:
        raise not_allowed(str(error)) from error


def existing_namespace(call: Call) -> tuple[NamespaceName, NamespaceRow]:
    """The namespace that the path names, which must exist.

    Raises:
        RefusalError: 412 or 404.
    """
    name = namespace_name(call)
    row = call.facade.catalog.namespace(name)
    if row is None:
        raise not_found("Namespace does not exist")
    return name, row


def missing_topic(catalog: Catalog, topic: TopicName) -> RefusalError:
    """The 404 for a topic that does not exist, in Pulsar's words for its kind of name."""
    if not topic.is_persistent:
        return not_found(f"{topic}: non-persistent topics are not supported")
    if topic.partition < 0:
        return not_found(f"Topic {topic} not found")
    if catalog.partitioned(topic.base.full) is None:
        return not_found(f"Partitioned Topic not found: {topic} has zero partitions")
    return not_found("Topic partitions were not yet created")


def existing_topic(call: Call) -> TopicName:
    """The topic (a partition, or not partitioned) that the path names, which must exist.

    Raises:
        RefusalError: 412 or 404; a partitioned topic's own name is a 404, as in Pulsar.
    """
    topic = topic_name(call)
    if call.facade.catalog.topic(topic.full) is None:
        raise missing_topic(call.facade.catalog, topic)
    return topic


def existing_partitioned(call: Call) -> tuple[TopicName, PartitionedRow]:
    """The partitioned topic that the path names, which must exist.

    Raises:
        RefusalError: 412 for a partition's name, 404.
    """
    topic = topic_name(call)
    row = call.facade.catalog.partitioned(topic.full)
    if row is None:
        if topic.partition >= 0:
            raise not_allowed("Partitioned Topic Name should not contain '-partition-'")
        raise not_found(f"Partitioned Topic {topic} not found")
    return topic, row


class _Names(list[TopicName]):
    """Names of partitions."""

    every: _Names | None = None
    """Those of all partitions, if some are missing here."""


_shared: WeakValueDictionary[tuple[str, int], _Names] = WeakValueDictionary()
"""The names of all partitions of topics that requests are at work on, by the topic and their
number. Hundreds of requests about one topic share them: those of 990 partitions are 250 KB."""


def partitions_of(catalog: Catalog, topic: TopicName) -> Sequence[TopicName]:
    """The existing partitions of a partitioned topic, in order."""
    row = catalog.partitioned(topic.full)
    if row is None:
        return []
    key = topic.full, row.partitions
    names = _shared.get(key)
    if names is None:
        names = _Names(topic.partition_name(index) for index in range(row.partitions))
        _shared[key] = names
    found = _Names(name for name in names if catalog.topic(name.full) is not None)
    if len(found) == len(names):
        return names
    found.every = names
    return found


def existing_parts(call: Call) -> Sequence[TopicName]:
    """The topics that hold the messages of the one that the path names, which must exist.

    Raises:
        RefusalError: 412 or 404.
    """
    topic = topic_name(call)
    if call.facade.catalog.partitioned(topic.full) is not None:
        return partitions_of(call.facade.catalog, topic)
    return [existing_topic(call)]


def single_topic(call: Call, refusal: str) -> TopicName:
    """The existing topic that the path names; 405 with ``refusal`` if it is partitioned.

    Raises:
        RefusalError: 405, 412 or 404.
    """
    topic = topic_name(call)
    if call.facade.catalog.partitioned(topic.full) is not None:
        raise RefusalError(405, refusal)
    return existing_topic(call)


def refuse_partitioned_delete(catalog: Catalog, topic: TopicName) -> None:
    """Raise 409 if ``topic`` is partitioned: another verb deletes such topics."""
    if catalog.partitioned(topic.full) is not None:
        raise conflict(
            f"{topic} is a partitioned topic, instead of calling delete topic, please call "
            "delete-partitioned-topic."
        )
