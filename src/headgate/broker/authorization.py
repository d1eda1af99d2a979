"""Authorization: every command and every route asks whether its operation is allowed.

Operations are named ``what.verb`` (:mod:`headgate.wire.commands`, ``headgate.admin.operations``).
The connection asks once for each command before it carries it out, the admin API once for each
request before it reads the body, ``/metrics`` once for each scrape. As in Pulsar, a command that
acts on a connected producer or consumer needs no further permission: creating it needed one.

:mod:`.authentication` finds out who a client is; without it every client is
:data:`~headgate.base.identity.NOBODY`. :class:`AllowAll` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.base.identity import Identity
from headgate.base.names import InvalidNameError, NamespaceName, parse_topic
from headgate.broker.connection.client_connection import ClientConnection
from headgate.metadata.errors import RefusalError
from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.messages import BaseCommand


class Authorizer(Protocol):
    """Decides who may perform which operation."""

    def allows(self, identity: Identity, operation: str, resource: str, subscription: str) -> bool:
        """Whether ``identity`` may perform ``operation`` on ``resource``: a topic's full name, a
        namespace or a tenant; empty for the broker itself. ``subscription`` is empty unless the
        operation concerns one."""


class AllowAll:
    """Allows every operation to everybody."""

    def allows(
        self,
        identity: Identity,  # noqa: ARG002
        operation: str,  # noqa: ARG002
        resource: str,  # noqa: ARG002
        subscription: str,  # noqa: ARG002
    ) -> bool:
        return True


def check_allowed(
    authorizer: Authorizer,
    identity: Identity,
    operation: str,
    resource: str,
    subscription: str = "",
) -> None:
    """Check that the operation is allowed.

    Raises:
        RefusalError: 403, it is not.
    """
    if not authorizer.allows(identity, operation, resource, subscription):
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
        found = resource_of(connection, command)
    except InvalidNameError:
        return
    if found is not None:
        resource, subscription = found
        operation = COMMANDS[command.type].operation
        check_allowed(authorizer, connection.identity, operation, resource, subscription)


Resource = tuple[str, str]
"""The resource of a command and the subscription that it concerns, which may be empty."""


def _topic(name: str, subscription: str = "") -> Resource:
    return parse_topic(name).full, subscription


def _consumers(connection: ClientConnection, consumer_id: int) -> Resource | None:
    connected = connection.consumers.get(consumer_id)
    if connected is None:
        return None
    subscription = connected[1]
    return subscription.topic.name.full, subscription.name


RESOURCES: dict[int, Callable[[ClientConnection, BaseCommand], Resource | None]] = {
    CommandType.CONNECT: lambda _, __: ("", ""),
    CommandType.PARTITIONED_METADATA: lambda _, c: _topic(c.partitionMetadata.topic),
    CommandType.LOOKUP: lambda _, c: _topic(c.lookupTopic.topic),
    CommandType.GET_TOPICS_OF_NAMESPACE: lambda _, c: (
        str(NamespaceName.parse(c.getTopicsOfNamespace.namespace)),
        "",
    ),
    CommandType.GET_SCHEMA: lambda _, c: _topic(c.getSchema.topic),
    CommandType.GET_OR_CREATE_SCHEMA: lambda _, c: _topic(c.getOrCreateSchema.topic),
    CommandType.PRODUCER: lambda _, c: _topic(c.producer.topic),
    CommandType.SUBSCRIBE: lambda _, c: _topic(c.subscribe.topic, c.subscribe.subscription),
    CommandType.GET_LAST_MESSAGE_ID: lambda own, c: _consumers(own, c.getLastMessageId.consumer_id),
    CommandType.UNSUBSCRIBE: lambda own, c: _consumers(own, c.unsubscribe.consumer_id),
    CommandType.SEEK: lambda own, c: _consumers(own, c.seek.consumer_id),
}
"""The commands that need permission, each with the resource that it acts on (None if it does not
exist)."""
