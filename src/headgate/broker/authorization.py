"""Authorization: every command and every route asks whether its operation is allowed.

Operations are named ``what.verb`` (:mod:`headgate.wire.commands`, ``headgate.admin.operations``).
The connection asks once for each command before it carries it out, the admin API once for each
request before it reads the body, ``/metrics`` once for each scrape. As in Pulsar, a command that
acts on a connected producer or consumer needs no further permission: creating it needed one.

There is no authentication yet, so the role is always empty and :class:`AllowAll` decides. For this
reason the broker binds to loopback by default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.base.names import InvalidNameError, NamespaceName, parse_topic
from headgate.broker.connection.client_connection import ClientConnection
from headgate.metadata.errors import RefusalError
from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.messages import BaseCommand

NO_ROLE = ""
"""The role of a client without authentication."""


class Authorizer(Protocol):
    """Decides which role may perform which operation."""

    def allows(self, role: str, operation: str, resource: str) -> bool:
        """Whether ``role`` may perform ``operation`` on ``resource``: a topic's full name, a
        namespace or a tenant; empty for the broker itself."""


class AllowAll:
    """Allows every operation to every role."""

    def allows(self, role: str, operation: str, resource: str) -> bool:  # noqa: ARG002
        return True


def check_allowed(authorizer: Authorizer, operation: str, resource: str) -> None:
    """Check that the operation is allowed.

    Raises:
        RefusalError: 403, it is not.
    """
    if not authorizer.allows(NO_ROLE, operation, resource):
        where = f" on {resource}" if resource else ""
        raise RefusalError(403, f"Client is not authorized to perform {operation}{where}")


def check_command(
    authorizer: Authorizer, connection: ClientConnection, command: BaseCommand
) -> None:
    """Check that a client's command is allowed, or needs no permission.

    A command with an invalid name, or of a consumer that does not exist, passes: its handler
    refuses it.

    Raises:
        RefusalError: 403, it is not allowed.
    """
    resource_of = RESOURCES.get(command.type)
    if resource_of is None:
        return
    try:
        resource = resource_of(connection, command)
    except InvalidNameError:
        return
    if resource is not None:
        operation = COMMANDS[command.type].operation
        check_allowed(authorizer, operation, resource)


def _topic_of(connection: ClientConnection, consumer_id: int) -> str | None:
    connected = connection.consumers.get(consumer_id)
    return None if connected is None else connected[1].topic.name.full


RESOURCES: dict[int, Callable[[ClientConnection, BaseCommand], str | None]] = {
    CommandType.CONNECT: lambda _, __: "",
    CommandType.PARTITIONED_METADATA: lambda _, c: parse_topic(c.partitionMetadata.topic).full,
    CommandType.LOOKUP: lambda _, c: parse_topic(c.lookupTopic.topic).full,
    CommandType.GET_TOPICS_OF_NAMESPACE: lambda _, c: str(
        NamespaceName.parse(c.getTopicsOfNamespace.namespace)
    ),
    CommandType.GET_SCHEMA: lambda _, c: parse_topic(c.getSchema.topic).full,
    CommandType.GET_OR_CREATE_SCHEMA: lambda _, c: parse_topic(c.getOrCreateSchema.topic).full,
    CommandType.PRODUCER: lambda _, c: parse_topic(c.producer.topic).full,
    CommandType.SUBSCRIBE: lambda _, c: parse_topic(c.subscribe.topic).full,
    CommandType.GET_LAST_MESSAGE_ID: lambda own, c: _topic_of(own, c.getLastMessageId.consumer_id),
    CommandType.UNSUBSCRIBE: lambda own, c: _topic_of(own, c.unsubscribe.consumer_id),
    CommandType.SEEK: lambda own, c: _topic_of(own, c.seek.consumer_id),
}
"""The commands that need permission, each with the resource that it acts on (None if it does not
exist)."""
