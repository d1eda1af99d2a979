"""The commands that a client may send, one row each.

A row answers four questions of the broker: the command's name, the operation that it performs (the
name that authorization decides about), whether it is built, and how to refuse it. A command without
a row is one that only brokers send.

A refusal follows the protocol: if a command has a reply of its own that can carry an error, the
client waits for exactly that reply, and would time out on a plain ERROR.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.wire.codes import CommandType, LookupResult, PartitionedMetadataResult, ServerError
from headgate.wire.frame import FIELD_OF_TYPE, encode_frame
from headgate.wire.ids import NO_REQUEST
from headgate.wire.messages import BaseCommand


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """One command that clients send."""

    type: CommandType
    operation: str
    """The operation as ``subject.verb``; the name that authorization decides about."""

    built: bool
    """Whether this broker executes it. If not, reply with :func:`refuse`."""

    key: str | None
    """The field that ties a reply to it; None if it never has a reply."""

    reply: CommandType
    """The command that reports a failure."""

    @property
    def name(self) -> str:
        """The protocol's name, for messages."""
        return self.type.name

    @property
    def field(self) -> str:
        """The field of BaseCommand that holds the command."""
        return FIELD_OF_TYPE[self.type]

    @property
    def has_request_id(self) -> bool:
        """Whether every such command carries a request id."""
        return self.key == "request_id"


_T = CommandType
_Row = tuple[CommandType, str, str | None, CommandType]

_BUILT: tuple[_Row, ...] = (
    (_T.CONNECT, "connection.open", None, _T.ERROR),
    (_T.AUTH_RESPONSE, "connection.open", None, _T.ERROR),
    (_T.PING, "connection.keep_alive", None, _T.ERROR),
    (_T.PONG, "connection.keep_alive", None, _T.ERROR),
    (_T.PARTITIONED_METADATA, "topic.lookup", "request_id", _T.PARTITIONED_METADATA_RESPONSE),
    (_T.LOOKUP, "topic.lookup", "request_id", _T.LOOKUP_RESPONSE),
    (_T.GET_TOPICS_OF_NAMESPACE, "namespace.topics", "request_id", _T.ERROR),
    (_T.WATCH_TOPIC_LIST, "namespace.topics", "request_id", _T.ERROR),
    (_T.WATCH_TOPIC_LIST_CLOSE, "namespace.topics", "request_id", _T.ERROR),
    (_T.PRODUCER, "topic.produce", "request_id", _T.ERROR),
    (_T.SEND, "topic.produce", "sequence_id", _T.SEND_ERROR),
    (_T.CLOSE_PRODUCER, "topic.produce", "request_id", _T.ERROR),
    (_T.SUBSCRIBE, "topic.consume", "request_id", _T.ERROR),
    (_T.FLOW, "topic.consume", None, _T.ERROR),
    (_T.ACK, "topic.consume", "request_id?", _T.ACK_RESPONSE),
    (_T.REDELIVER_UNACKNOWLEDGED_MESSAGES, "topic.consume", None, _T.ERROR),
    (_T.GET_LAST_MESSAGE_ID, "topic.consume", "request_id", _T.ERROR),
    (_T.CONSUMER_STATS, "topic.consume", "request_id", _T.CONSUMER_STATS_RESPONSE),
    (_T.CLOSE_CONSUMER, "topic.consume", "request_id", _T.ERROR),
    (_T.UNSUBSCRIBE, "subscription.delete", "request_id", _T.ERROR),
    (_T.SEEK, "subscription.reset", "request_id", _T.ERROR),
    (_T.GET_SCHEMA, "schema.read", "request_id", _T.GET_SCHEMA_RESPONSE),
    (_T.GET_OR_CREATE_SCHEMA, "schema.write", "request_id", _T.GET_OR_CREATE_SCHEMA_RESPONSE),
)

_NOT_BUILT: tuple[_Row, ...] = (
    (_T.TC_CLIENT_CONNECT_REQUEST, "transaction.use", "request_id", _T.TC_CLIENT_CONNECT_RESPONSE),
    (_T.NEW_TXN, "transaction.use", "request_id", _T.NEW_TXN_RESPONSE),
    (_T.ADD_PARTITION_TO_TXN, "transaction.use", "request_id", _T.ADD_PARTITION_TO_TXN_RESPONSE),
    (
        _T.ADD_SUBSCRIPTION_TO_TXN,
        "transaction.use",
        "request_id",
        _T.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
    ),
    (_T.END_TXN, "transaction.use", "request_id", _T.END_TXN_RESPONSE),
    (_T.END_TXN_ON_PARTITION, "transaction.use", "request_id", _T.END_TXN_ON_PARTITION_RESPONSE),
    (
        _T.END_TXN_ON_SUBSCRIPTION,
        "transaction.use",
        "request_id",
        _T.END_TXN_ON_SUBSCRIPTION_RESPONSE,
    ),
    (_T.WATCH_TC_ASSIGNMENTS, "transaction.use", "watch_id", _T.WATCH_TC_ASSIGNMENTS_UPDATE),
    (_T.WATCH_TC_ASSIGNMENTS_CLOSE, "transaction.use", None, _T.ERROR),
    (_T.SCALABLE_TOPIC_LOOKUP, "topic.lookup", "session_id", _T.SCALABLE_TOPIC_UPDATE),
    (_T.SCALABLE_TOPIC_CLOSE, "topic.lookup", None, _T.ERROR),
    (
        _T.SCALABLE_TOPIC_SUBSCRIBE,
        "topic.consume",
        "request_id",
        _T.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE,
    ),
    (
        _T.WATCH_SCALABLE_TOPICS,
        "namespace.topics",
        "watch_id",
        _T.WATCH_SCALABLE_TOPICS_UPDATE,
    ),
    (_T.WATCH_SCALABLE_TOPICS_CLOSE, "namespace.topics", None, _T.ERROR),
)


def _facts(row: _Row, *, built: bool) -> CommandFacts:
    kind, operation, key, reply = row
    return CommandFacts(type=kind, operation=operation, built=built, key=key, reply=reply)


COMMANDS: dict[int, CommandFacts] = {
    facts.type: facts
    for facts in (
        *(_facts(row, built=True) for row in _BUILT),
        *(_facts(row, built=False) for row in _NOT_BUILT),
    )
}
"""Every command that a client may send, by its number."""

_FAILED = {
    CommandType.LOOKUP_RESPONSE: LookupResult.FAILED,
    CommandType.PARTITIONED_METADATA_RESPONSE: PartitionedMetadataResult.FAILED,
}
"""Replies that also report the failure in a field ``response``."""


def refuse(command: BaseCommand, code: ServerError, message: str) -> bytes | None:
    """The reply that reports the failure of ``command``, as a frame. For built commands too.

    None if the protocol has no such reply: then ignore the command or close the connection.
    """
    facts = COMMANDS.get(command.type)
    if facts is None:
        return None
    asked = getattr(command, facts.field)
    reply = BaseCommand(type=facts.reply)
    answer = getattr(reply, FIELD_OF_TYPE[facts.reply])
    if facts.type == CommandType.CONNECT:
        answer.request_id = NO_REQUEST
    elif facts.key is None:
        return None
    else:
        key = facts.key.removesuffix("?")
        if not asked.HasField(key):
            return None
        setattr(answer, key, getattr(asked, key))
    if facts.type == CommandType.SEND:
        answer.producer_id = asked.producer_id
    elif facts.type == CommandType.ACK:
        answer.consumer_id = asked.consumer_id
    if facts.reply in _FAILED:
        answer.response = _FAILED[facts.reply]
    suffixed = "error_code" in answer.DESCRIPTOR.fields_by_name
    setattr(answer, "error_code" if suffixed else "error", code)
    setattr(answer, "error_message" if suffixed else "message", message)
    return encode_frame(reply)
