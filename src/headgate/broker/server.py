"""Serves the binary protocol on a socket: one connection for each client."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from functools import partial

from headgate.broker.authorization import check_command, check_demands, demands_of
from headgate.broker.commands.acknowledging import Acknowledgements
from headgate.broker.commands.auditing import CommandAudit
from headgate.broker.commands.consumer_stats import consumer_stats
from headgate.broker.commands.consuming import ConsumerCommands, close_consumer, redeliver
from headgate.broker.commands.lookups import LookupCommands
from headgate.broker.commands.producer_access import ProducerAccess
from headgate.broker.commands.producing import ProducerCommands
from headgate.broker.commands.schemas import SchemaCommands, TopicSchemas
from headgate.broker.commands.topic_lists import TopicListCommands
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.connection import Connection
from headgate.broker.connection.connection_host import CommandHandlers
from headgate.broker.connection.listener_handles import handles_of
from headgate.broker.service import Broker
from headgate.broker.topic_epochs import TopicEpochs
from headgate.wire.codes import CommandType
from headgate.wire.messages import BaseCommand


def command_handlers(broker: Broker) -> CommandHandlers:
    """A handler for each command that a connection does not carry out itself."""
    registry, catalog = broker.registry, broker.catalog
    schemas = TopicSchemas(broker.schemas, registry)

    def check(connection: ClientConnection, command: BaseCommand) -> None:
        check_command(broker.authorizer, broker.counts, connection, command)

    def later_check(connection: ClientConnection, command: BaseCommand) -> Callable[[], None]:
        # Not the command: a change goes on without its client, who was charged with it.
        kind, demands = command.type, demands_of(connection, command)
        return lambda: check_demands(broker.authorizer, broker.counts, connection, kind, demands)

    lists = TopicListCommands(
        catalog, registry.system_topics, broker.settings, broker.topic_watchers,
        broker.client_memory, check,
    )  # fmt: skip
    lookups = LookupCommands(registry, catalog, broker.settings, broker.counts, broker.info, check)
    schema_commands = SchemaCommands(
        broker.schemas, registry, check, broker.client_memory.check_answer
    )
    producers = ProducerCommands(
        broker, registry, schemas, broker.subscriptions, broker.count_limits, broker.policies.uses,
        ProducerAccess(broker, TopicEpochs(catalog, broker.writer)), check,
    )  # fmt: skip
    consumers = ConsumerCommands(
        broker, registry, schemas, broker.subscriptions, broker.entries, broker.count_limits,
        broker.policies.uses, broker.logs, later_check,
    )  # fmt: skip
    audit = CommandAudit(broker.audit)
    return CommandHandlers(
        check=audit.checked(check),
        acknowledge=Acknowledgements(broker.logs, broker.work, broker.settings).acknowledge,
        by_type={
            CommandType.LOOKUP: lookups.lookup,
            CommandType.PARTITIONED_METADATA: lookups.partition_metadata,
            CommandType.GET_TOPICS_OF_NAMESPACE: lists.topics_of_namespace,
            CommandType.WATCH_TOPIC_LIST: lists.watch,
            CommandType.WATCH_TOPIC_LIST_CLOSE: lists.close_watcher,
            CommandType.GET_SCHEMA: schema_commands.get_schema,
            CommandType.GET_OR_CREATE_SCHEMA: schema_commands.get_or_create_schema,
            CommandType.PRODUCER: audit.noted(producers.create_producer),
            CommandType.CLOSE_PRODUCER: producers.close_producer,
            CommandType.SUBSCRIBE: audit.noted(consumers.subscribe),
            CommandType.UNSUBSCRIBE: audit.noted(consumers.unsubscribe),
            CommandType.SEEK: audit.noted(consumers.seek),
            CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES: partial(
                redeliver, broker.logs, broker.work
            ),
            CommandType.CLOSE_CONSUMER: close_consumer,
            CommandType.CONSUMER_STATS: consumer_stats,
            CommandType.GET_LAST_MESSAGE_ID: consumers.last_message_id,
        },
    )


def connection_factory(
    broker: Broker, connection_class: type[Connection] = Connection
) -> partial[Connection]:
    """The protocol factory for asyncio: a connection for each client, on a socket or in memory."""
    handlers = command_handlers(broker)
    return partial(
        connection_class, broker, broker.connections, broker.engine, broker.settings, handlers
    )


class BinaryServer:
    """A listening socket of the binary protocol, with the connections that it accepted."""

    def __init__(self, broker: Broker, servers: Sequence[asyncio.Server]) -> None:
        """``servers`` are those of all handles of the socket."""
        self._broker = broker
        self._servers = servers

    async def close(self) -> None:
        """Accept no more clients and end every connection."""
        for server in self._servers:
            server.close()
        for connection in list(self._broker.connections):
            connection.close()
        await asyncio.sleep(0)


async def serve_binary(
    broker: Broker,
    listener: socket.socket,
    backlog: int,
    make: Callable[[], asyncio.BaseProtocol] | None = None,
    handles: int = 1,
) -> BinaryServer:
    """Serve clients on a listening socket, which is closed with the server. ``backlog`` connections
    may wait to be accepted. ``make`` makes the protocol of each, a :class:`Connection` if it is
    left out. ``handles`` as in :func:`handles_of`."""
    make = make or connection_factory(broker)
    # asyncio listens once more, with a backlog of 100 unless it is told another.
    servers = [
        await broker.loop.create_server(make, sock=handle, backlog=backlog)
        for handle in handles_of(listener, handles)
    ]
    return BinaryServer(broker, servers)
