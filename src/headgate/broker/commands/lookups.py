"""Answers LOOKUP, PARTITIONED_METADATA and GET_TOPICS_OF_NAMESPACE."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from headgate.base.errors import HeadgateError
from headgate.base.names import NamespaceName, TopicName, parse_topic
from headgate.base.work_units import TURN_UNITS
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.info import BrokerCounts, BrokerInfo
from headgate.broker.registry import TopicNotFoundError, TopicRegistry, check_persistent
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError
from headgate.policy.settings import Settings
from headgate.wire import encode
from headgate.wire.codes import ServerError, TopicListMode
from headgate.wire.messages import BaseCommand

SLICE_NAMES: Final = 8 * TURN_UNITS
"""Names of topics that are listed in one turn."""


class LookupCommands:
    """Carries out the lookups of all connections of one broker."""

    def __init__(
        self,
        registry: TopicRegistry,
        catalog: Catalog,
        settings: Settings,
        counts: BrokerCounts,
        info: BrokerInfo,
    ) -> None:
        self._registry = registry
        self._catalog = catalog
        self._settings = settings
        self._counts = counts
        self._info = info

    def _check_namespace(self, name: TopicName) -> None:
        if self._catalog.namespace(name.namespace) is None:
            raise RefusalError(404, f"Namespace {name.namespace} does not exist")

    @contextlib.contextmanager
    def _in_progress(self) -> Iterator[None]:
        """Count a lookup while it runs; refuse it if too many are running."""
        counts = self._counts
        if counts.lookups_pending >= self._settings.maxConcurrentLookupRequest:
            raise RefusalError(429, "Failed due to too many pending lookup requests")
        counts.lookups_pending += 1
        try:
            yield
        finally:
            counts.lookups_pending -= 1

    async def lookup(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Answer with the address of this broker, which serves every topic."""
        request = command.lookupTopic
        if request.advertised_listener_name:
            self._counts.lookups_failed += 1
            # Clients give up at once on this text; on any other they retry until their timeout.
            connection.write(
                encode.lookup_failed(
                    request.request_id,
                    ServerError.SERVICE_NOT_READY,
                    f"the broker do not have {request.advertised_listener_name} listener",
                )
            )
            return
        try:
            self._check_namespace(parse_topic(request.topic))
        except HeadgateError:
            self._counts.lookups_failed += 1
            raise
        info = self._info
        connection.write(
            encode.lookup_connect(
                request.request_id,
                broker_url=info.broker_url,
                broker_url_tls=info.broker_url_tls,
            )
        )
        self._counts.lookups_answered += 1

    async def partition_metadata(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Answer how many partitions a topic has. A topic that is created on demand gets the
        default number."""
        request = command.partitionMetadata
        registry = self._registry
        name = parse_topic(request.topic)
        self._check_namespace(name)
        check_persistent(name)
        partitions = registry.partitions(name)
        if not partitions and not registry.exists(name) and name.partition < 0:
            if not request.metadata_auto_creation_enabled:
                raise TopicNotFoundError(name)
            with self._in_progress():
                partitions = await registry.create_partitions_on_demand(name)
        connection.write(encode.partition_metadata(request.request_id, partitions))

    def topics_of_namespace(self, connection: ClientConnection, command: BaseCommand) -> None:
        """List the topics of a namespace, with each partition but without the broker's own topics.
        A namespace that does not exist has an empty list, because a client may subscribe by a
        pattern before the namespace is created.

        A short request can have a long answer, which one command of the protocol holds. It is made
        in slices, and refused above ``maxMessageSize``: Java and Go clients end a connection that
        brings a longer frame. Each connection gets one such answer at a time, and none while its
        peer leaves earlier answers unread.
        """
        request = command.getTopicsOfNamespace
        try:
            namespace = NamespaceName.parse(request.namespace)
        except HeadgateError as error:
            connection.refuse(command, error)
            return
        if request.mode == TopicListMode.NON_PERSISTENT:
            connection.write(encode.topics_of_namespace(request.request_id, []))
        else:
            connection.run_in_slices(self._list_topics(connection, command, namespace))

    def _list_topics(
        self, connection: ClientConnection, command: BaseCommand, namespace: NamespaceName
    ) -> Iterator[int]:
        hidden = self._registry.system_topics
        after, size_bytes, parts = "", 0, []
        while True:
            names = self._catalog.topics_after(namespace, after, SLICE_NAMES)
            part = encode.topic_names(name for name in names if name not in hidden)
            size_bytes += len(part)
            if size_bytes > self._settings.maxMessageSize:
                connection.refuse(command, _too_many(namespace, self._settings.maxMessageSize))
                return
            parts.append(part)
            if len(names) < SLICE_NAMES:
                break
            after = names[-1]
            yield TURN_UNITS
        request_id = command.getTopicsOfNamespace.request_id
        connection.write(encode.topics_of_namespace_in_parts(request_id, parts))
        yield TURN_UNITS


def _too_many(namespace: NamespaceName, bytes_max: int) -> RefusalError:
    return RefusalError(
        429,
        f"The names of the topics in {namespace} have more than {bytes_max} bytes "
        "(maxMessageSize): use more namespaces, or list the topics with the admin API",
    )
