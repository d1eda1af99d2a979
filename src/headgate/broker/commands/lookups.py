"""Answers LOOKUP and PARTITIONED_METADATA."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from headgate.base.errors import HeadgateError
from headgate.base.names import TopicName, parse_topic
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.info import BrokerCounts, BrokerInfo
from headgate.broker.registry import TopicNotFoundError, TopicRegistry, check_persistent
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError
from headgate.policy.settings import Settings
from headgate.wire import encode
from headgate.wire.codes import ServerError
from headgate.wire.messages import BaseCommand


class LookupCommands:
    """Carries out the lookups of all connections of one broker."""

    def __init__(
        self,
        registry: TopicRegistry,
        catalog: Catalog,
        settings: Settings,
        counts: BrokerCounts,
        info: BrokerInfo,
        check: Callable[[ClientConnection, BaseCommand], None],
    ) -> None:
        """``check`` raises a refusal unless a client may have a command carried out."""
        self._check = check
        self._registry = registry
        self._catalog = catalog
        self._settings = settings
        self._counts = counts
        self._info = info
        self._through_service_url = is_loopback(info.broker_url or info.broker_url_tls)

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

    def lookup(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Answer with the address of this broker, which serves every topic.

        Raises:
            RefusalError: its namespace does not exist.
            InvalidNameError: no topic may have the name.
        """
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
                through_service_url=self._through_service_url,
            )
        )
        self._counts.lookups_answered += 1

    def partition_metadata(
        self, connection: ClientConnection, command: BaseCommand
    ) -> Coroutine[Any, Any, None] | None:
        """Answer how many partitions a topic has. A topic that is created on demand gets the
        default number, when that is stored.

        Raises:
            RefusalError: the topic is not there and may not be created.
            InvalidNameError: no topic may have the name.
        """
        request = command.partitionMetadata
        registry = self._registry
        name = parse_topic(request.topic)
        self._check_namespace(name)
        check_persistent(name)
        partitions = registry.partitions(name)
        if not partitions and name.partition < 0 and not registry.exists(name):
            if not request.metadata_auto_creation_enabled:
                raise TopicNotFoundError(name)
            return self._create_partitions(connection, command, name)
        connection.write(encode.partition_metadata(request.request_id, partitions))
        return None

    async def _create_partitions(
        self, connection: ClientConnection, command: BaseCommand, name: TopicName
    ) -> None:
        request_id = command.partitionMetadata.request_id
        check = partial(self._check, connection, command)
        with self._in_progress():
            partitions = await self._registry.create_partitions_on_demand(name, check)
        connection.write(encode.partition_metadata(request_id, partitions))


def is_loopback(url: str) -> bool:
    """Whether only the broker's own machine reaches the address of a URL. Then lookups tell clients
    to stay with the URL that they use, as Pulsar's standalone does: it may lead through a port that
    is forwarded, of a container for example."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
