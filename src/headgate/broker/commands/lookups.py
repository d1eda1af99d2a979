"""LOOKUP, PARTITIONED_METADATA and the listing of a namespace's topics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headgate.base.errors import HeadgateError
from headgate.base.names import NamespaceName, TopicName, parse_topic
from headgate.broker.connection_bounds import TURN_WORK_MAX
from headgate.broker.registry import check_persistent
from headgate.metadata.errors import RefusalError
from headgate.wire import encode
from headgate.wire.codes import ServerError, TopicListMode
from headgate.wire.messages import BaseCommand

if TYPE_CHECKING:
    from headgate.broker.connection import Connection
    from headgate.broker.service import Broker


def _check_namespace(connection: Connection, name: TopicName) -> None:
    if connection.broker.catalog.namespace(name.namespace) is None:
        raise RefusalError(404, f"Namespace {name.namespace} does not exist")


@contextlib.contextmanager
def _in_progress(broker: Broker) -> Iterator[None]:
    """Count a lookup while it lasts; refuse it if there are too many."""
    if broker.lookups_count >= broker.settings.maxConcurrentLookupRequest:
        raise RefusalError(429, "Failed due to too many pending lookup requests")
    broker.lookups_count += 1
    try:
        yield
    finally:
        broker.lookups_count -= 1


async def lookup(connection: Connection, command: BaseCommand) -> None:
    """Answer with this broker: it serves every topic."""
    counts = connection.broker.counts
    request = command.lookupTopic
    if request.advertised_listener_name:
        counts.lookups_failed += 1
        # This wording makes clients give up at once; with any other they retry to their timeout.
        connection.write(
            encode.lookup_failed(
                request.request_id,
                ServerError.SERVICE_NOT_READY,
                f"the broker do not have {request.advertised_listener_name} listener",
            )
        )
        return
    try:
        _check_namespace(connection, parse_topic(request.topic))
    except HeadgateError:
        counts.lookups_failed += 1
        raise
    connection.write(
        encode.lookup_connect(request.request_id, broker_url=connection.broker.info.broker_url)
    )
    counts.lookups_answered += 1


async def partition_metadata(connection: Connection, command: BaseCommand) -> None:
    """Answer how many partitions a topic has; one that is made on demand has the default."""
    request = command.partitionMetadata
    broker = connection.broker
    name = parse_topic(request.topic)
    _check_namespace(connection, name)
    check_persistent(name)
    partitions = broker.registry.partitions(name)
    if not partitions and not broker.registry.exists(name) and name.partition < 0:
        creates = request.metadata_auto_creation_enabled and broker.settings.allowAutoTopicCreation
        if not creates:
            raise RefusalError(404, f"Topic {name} not found")
        with _in_progress(broker):
            partitions = await broker.registry.create_partitions_on_demand(name)
    connection.write(encode.partition_metadata(request.request_id, partitions))


def topics_of_namespace(connection: Connection, command: BaseCommand) -> None:
    """List a namespace's topics, each partition by itself; the broker's own stay hidden. One that
    does not exist has none: whoever waits for topics by a pattern may come before it.

    A short question with a long answer: of each connection one is made in a turn, and none for a
    peer that does not take those before.
    """
    request = command.getTopicsOfNamespace
    try:
        namespace = NamespaceName.parse(request.namespace)
    except HeadgateError as error:
        connection.refuse(command, error)
        return
    lists_topics = request.mode != TopicListMode.NON_PERSISTENT
    connection.carry_on(_list_topics(connection, request.request_id, namespace, lists_topics))


def _list_topics(
    connection: Connection, request_id: int, namespace: NamespaceName, lists_topics: bool
) -> Iterator[int]:
    broker = connection.broker
    topics = broker.catalog.topics(namespace) if lists_topics else []
    hidden = broker.registry.system_topics
    names = [name for name in topics if name not in hidden]
    connection.write(encode.topics_of_namespace(request_id, names))
    yield TURN_WORK_MAX
