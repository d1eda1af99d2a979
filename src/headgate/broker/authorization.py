"""Authorization: every command and every route asks whether its operation is allowed.

Operations are named ``what.verb`` (:mod:`headgate.wire.commands`, ``headgate.admin.operations``),
and each has a rule (:mod:`headgate.policy.access_rules`). The connection asks for each command
before it carries it out, and again before it adds a producer or consumer; the admin API asks for
each request before it reads the body, ``/metrics`` for each scrape. Whatever waits for others asks
again in the turn of the loop in which it changes something. As in Pulsar, a command that
acts on a connected producer or consumer needs no further permission: creating it needed one, and
``rights_rollout`` closes those that lose it.

:mod:`.authentication` finds out who a client is; without it every client is
:data:`~headgate.base.identity.NOBODY`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from headgate.base.identity import Identity
from headgate.base.names import InvalidNameError, NamespaceName, parse_topic
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.info import BrokerCounts
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import UnauthorizedError
from headgate.policy.access_law import AccessLaw, Decision
from headgate.policy.access_rules import refusal_of
from headgate.policy.authorization_settings import AuthorizationSettings
from headgate.policy.setting_info import names_of
from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.messages import BaseCommand

CONSUME: Final = COMMANDS[CommandType.SUBSCRIBE].operation
PRODUCE: Final = COMMANDS[CommandType.PRODUCER].operation
"""The operations of connected consumers and producers."""


class Authorizer(Protocol):
    """Decides who may perform which operation."""

    def decide(
        self, identity: Identity, operation: str, resource: str, subscription: str = "", /
    ) -> Decision:
        """Whether ``identity`` may perform ``operation`` on ``resource``: a topic's full name, a
        namespace or a tenant; empty for the broker itself. ``subscription`` is empty unless the
        operation concerns one."""


class AllowAll:
    """Allows every operation to everybody."""

    def decide(
        self,
        identity: Identity,  # noqa: ARG002
        operation: str,  # noqa: ARG002
        resource: str,  # noqa: ARG002
        subscription: str = "",  # noqa: ARG002
    ) -> Decision:
        return ALLOWED


ALLOW_ALL: Final = AllowAll()
"""What decides without authorization."""

ALLOWED: Final = Decision(True, "the broker checks no permissions (authorizationEnabled=false)")
"""The decision about everything without authorization."""


def authorizer_of(catalog: Catalog, settings: AuthorizationSettings) -> Authorizer:
    """The authorizer that ``settings`` ask for."""
    if settings.authorizationEnabled:
        return AccessLaw(catalog, settings, names_of(settings.proxyRoles))
    return ALLOW_ALL


def check_allowed(
    authorizer: Authorizer,
    counts: BrokerCounts,
    identity: Identity,
    operation: str,
    resource: str,
    subscription: str = "",
) -> None:
    """Check that a request to the web port is allowed; ``counts`` has those that are not.

    Raises:
        UnauthorizedError: 401 or 403, it is not.
    """
    decision = authorizer.decide(identity, operation, resource, subscription)
    if not decision.allowed:
        counts.unauthorized += 1
        raise UnauthorizedError(*refusal_of(operation, resource), decision.reason)


def check_command(
    authorizer: Authorizer,
    counts: BrokerCounts,
    connection: ClientConnection,
    command: BaseCommand,
) -> None:
    """Check that a client's command is allowed, or needs no permission; ``counts`` has those that
    are not.

    A command with an invalid name, or of a consumer that does not exist, passes: its handler
    refuses it.

    Raises:
        UnauthorizedError: 403, it is not allowed.
    """
    if authorizer is not ALLOW_ALL:
        demands = demands_of(connection, command)
        check_demands(authorizer, counts, connection, command.type, demands)


def demands_of(connection: ClientConnection, command: BaseCommand) -> Sequence[Demand]:
    """What a command needs permission for, as of now: later its consumer may be gone."""
    find = DEMANDS.get(command.type)
    try:
        return () if find is None else tuple(find(connection, command))
    except InvalidNameError:
        return ()


def check_demands(
    authorizer: Authorizer,
    counts: BrokerCounts,
    connection: ClientConnection,
    kind: int,
    demands: Iterable[Demand],
) -> None:
    """:func:`check_command` about what a command of that kind needed before. Raises as it."""
    for operation, resource, subscription in demands:
        decision = authorizer.decide(connection.identity, operation, resource, subscription)
        if not decision.allowed:
            counts.unauthorized += 1
            raise command_refusal(kind, resource, decision)


def command_refusal(kind: int, resource: str, decision: Decision) -> UnauthorizedError:
    """The refusal that a client gets which may not have a kind of command carried out."""
    text = f"Client is not authorized to {_TEXTS.get(kind, COMMANDS[kind].name)}"
    return UnauthorizedError(403, text, f"{resource}: {decision.reason}")


_TEXTS: Final[dict[int, str]] = {
    CommandType.CONNECT: "connect",
    CommandType.PARTITIONED_METADATA: "Get Partition Metadata",
    CommandType.LOOKUP: "Lookup",
    CommandType.PRODUCER: "Produce",
    CommandType.SUBSCRIBE: "subscribe",
    CommandType.GET_TOPICS_OF_NAMESPACE: "GetTopicsOfNamespace",
    CommandType.WATCH_TOPIC_LIST: "WatchTopicList",
}
"""Pulsar's words for what a client may not do, which clients compare."""


Demand = tuple[str, str, str]
"""What a command needs permission for: operation, resource, and the subscription that it concerns,
which may be empty."""

_Demands = Callable[[ClientConnection, BaseCommand], Iterable[Demand]]


def _operation(command: BaseCommand) -> str:
    return COMMANDS[command.type].operation


def _topic(name_of: Callable[[BaseCommand], str]) -> _Demands:
    return lambda _, command: [(_operation(command), parse_topic(name_of(command)).full, "")]


def _consumers(id_of: Callable[[BaseCommand], int]) -> _Demands:
    """Of a command about a connected consumer."""

    def demands(connection: ClientConnection, command: BaseCommand) -> Iterable[Demand]:
        connected = connection.consumers.get(id_of(command))
        if connected is not None:
            subscription = connected[1]
            yield _operation(command), subscription.topic.name.full, subscription.name

    return demands


def _topics_of_namespace(_: ClientConnection, command: BaseCommand) -> Iterable[Demand]:
    if command.type == CommandType.WATCH_TOPIC_LIST:
        text = command.watchTopicList.namespace
    else:
        text = command.getTopicsOfNamespace.namespace
    yield _operation(command), str(NamespaceName.parse(text)), ""


def _subscribe(_: ClientConnection, command: BaseCommand) -> Iterable[Demand]:
    request = command.subscribe
    yield CONSUME, parse_topic(request.topic).full, request.subscription


def _producer(_: ClientConnection, command: BaseCommand) -> Iterable[Demand]:
    request = command.producer
    topic = parse_topic(request.topic).full
    yield PRODUCE, topic, ""
    if request.initial_subscription_name:
        # The broker creates a subscription for this producer.
        yield CONSUME, topic, request.initial_subscription_name


DEMANDS: dict[int, _Demands] = {
    CommandType.CONNECT: lambda _, command: [(_operation(command), "", "")],
    CommandType.PARTITIONED_METADATA: _topic(lambda c: c.partitionMetadata.topic),
    CommandType.LOOKUP: _topic(lambda c: c.lookupTopic.topic),
    CommandType.GET_TOPICS_OF_NAMESPACE: _topics_of_namespace,
    CommandType.WATCH_TOPIC_LIST: _topics_of_namespace,
    CommandType.GET_SCHEMA: _topic(lambda c: c.getSchema.topic),
    CommandType.GET_OR_CREATE_SCHEMA: _topic(lambda c: c.getOrCreateSchema.topic),
    CommandType.PRODUCER: _producer,
    CommandType.SUBSCRIBE: _subscribe,
    CommandType.GET_LAST_MESSAGE_ID: _consumers(lambda c: c.getLastMessageId.consumer_id),
    CommandType.UNSUBSCRIBE: _consumers(lambda c: c.unsubscribe.consumer_id),
    CommandType.CONSUMER_STATS: _consumers(lambda c: c.consumerStats.consumer_id),
    CommandType.SEEK: _consumers(lambda c: c.seek.consumer_id),
}
"""The commands that need permission, each with what it needs (nothing if its consumer does not
exist)."""
