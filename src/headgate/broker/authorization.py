"""The seam for authorization: every command and route names the operation that it performs.

Operations are named ``what.verb`` (:mod:`headgate.wire.commands`, ``headgate.admin.operations``).
The connection asks once for each command before it carries it out, the admin API once for each
request before it reads the body, ``/metrics`` once for each scrape. What acts on a producer or
consumer that is already connected is not asked about again, as in Pulsar: it was allowed when that
was made.

There is no authentication yet, so the role is always empty and :class:`AllowAll` decides; the
broker therefore binds to loopback unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from headgate.base.names import InvalidNameError, NamespaceName, parse_topic
from headgate.metadata.errors import RefusalError
from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.messages import BaseCommand

if TYPE_CHECKING:
    from headgate.broker.connection import Connection

NO_ROLE = ""
"""Who asks, as long as nobody says who it is."""


class Authorizer(Protocol):
    """Decides who may do what."""

    def allows(self, role: str, operation: str, resource: str) -> bool:
        """Whether ``role`` may perform ``operation`` on ``resource``: a topic's full name, a
        namespace or a tenant; empty for the broker itself."""


class AllowAll:
    """Everybody may do everything."""

    def allows(self, role: str, operation: str, resource: str) -> bool:  # noqa: ARG002
        return True


def check_allowed(authorizer: Authorizer, operation: str, resource: str) -> None:
    """Return if the operation is allowed.

    Raises:
        RefusalError: 403, it is not.
    """
    if not authorizer.allows(NO_ROLE, operation, resource):
        where = f" on {resource}" if resource else ""
        raise RefusalError(403, f"Client is not authorized to perform {operation}{where}")


def check_command(connection: Connection, command: BaseCommand) -> None:
    """Ask about a command that a client sent, if it is one of those that are asked about.

    A command whose names are not valid, or whose consumer does not exist, is left to its handler,
    which refuses it.

    Raises:
        RefusalError: 403, it is not allowed.
    """
    resource_of = ASKED.get(command.type)
    if resource_of is None:
        return
    try:
        resource = resource_of(connection, command)
    except InvalidNameError:
        return
    if resource is not None:
        operation = COMMANDS[command.type].operation
        check_allowed(connection.broker.authorizer, operation, resource)


def _topic_of(connection: Connection, consumer_id: int) -> str | None:
    entry = connection.consumers.get(consumer_id)
    return None if entry is None else entry[1].topic.name.full


ASKED: dict[int, Callable[[Connection, BaseCommand], str | None]] = {
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
"""Commands that are asked about, each with what it is about (None: nothing that exists)."""
