"""The commands of Pulsar's binary protocol that a reader sends and receives.

A frame is a u32 with the bytes behind it, a u32 with the bytes of the command, the command (a
protobuf ``BaseCommand``), and for MESSAGE the entry. All numbers are big-endian.

The descriptors here have only the fields that a reader uses, with Pulsar's numbers (PulsarApi.proto
of Apache Pulsar). No field is required, texts are bytes, and ids are signed, because a broker says
-1 for "none": so only a damaged encoding is an error, and what a broker leaves out reads as 0.

Pure: no I/O, no state.
"""

from __future__ import annotations

import enum
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

CONSUMER_ID: Final = 0
"""The id of the only consumer of a connection."""

PERMITS_MAX: Final = (1 << 31) - 1
"""Most permits of one FLOW: Pulsar's broker reads the number as a signed one of 32 bits."""

EARLIEST_ID: Final = (-1, -1)
"""The ledger id and entry id that stand for the begin of a topic."""

PROTOCOL_VERSION: Final = 19
CLIENT_VERSION: Final = b"pyspark-pulsar"

_EXCLUSIVE, _CUMULATIVE = 0, 1
"""A type of subscriptions and one of ACKs."""


class CommandType(enum.IntEnum):
    """The type of a command, which is also the number of its field in ``BaseCommand``."""

    CONNECTED = 3
    SUBSCRIBE = 4
    MESSAGE = 9
    ACK = 10
    FLOW = 11
    SUCCESS = 13
    ERROR = 14
    CLOSE_CONSUMER = 16
    PING = 18
    PONG = 19
    LOOKUP = 23
    LOOKUP_RESPONSE = 24
    GET_LAST_MESSAGE_ID = 29
    GET_LAST_MESSAGE_ID_RESPONSE = 30
    AUTH_CHALLENGE = 36
    AUTH_RESPONSE = 37


class ServerError(enum.IntEnum):
    """Codes of errors that a reader tells apart, with Pulsar's names in :data:`ERROR_NAMES`."""

    AUTHENTICATION = 3
    AUTHORIZATION = 4
    UNSUPPORTED_VERSION = 10
    TOPIC_NOT_FOUND = 11
    INVALID_TOPIC_NAME = 17
    NOT_ALLOWED = 22


class LookupType(enum.IntEnum):
    """What the answer to LOOKUP says."""

    REDIRECT = 0
    CONNECT = 1
    FAILED = 2


ERROR_NAMES: Final = (
    "UnknownError",
    "MetadataError",
    "PersistenceError",
    "AuthenticationError",
    "AuthorizationError",
    "ConsumerBusy",
    "ServiceNotReady",
    "ProducerBlockedQuotaExceededError",
    "ProducerBlockedQuotaExceededException",
    "ChecksumError",
    "UnsupportedVersionError",
    "TopicNotFound",
    "SubscriptionNotFound",
    "ConsumerNotFound",
    "TooManyRequests",
    "TopicTerminatedError",
    "ProducerBusy",
    "InvalidTopicName",
    "IncompatibleSchema",
    "ConsumerAssignError",
    "TransactionCoordinatorNotFound",
    "InvalidTxnStatus",
    "NotAllowedError",
)
"""The names of ``ServerError``, by code."""


class StoredEntry(NamedTuple):
    """An entry as the broker sends it; a tuple, because that is made in half the time."""

    ledger_id: int
    entry_id: int
    body: bytes
    """What follows the command in the frame of a MESSAGE."""


class LookupAnswer(NamedTuple):
    """The answer to a LOOKUP that did not fail."""

    url: str
    """The broker's service URL; "" if it has none of the kind."""
    is_redirect: bool
    """Whether to repeat the LOOKUP there, with ``is_authoritative``."""
    is_authoritative: bool
    through_proxy: bool
    """Whether to reach the broker through the address that was asked."""


_FIELDS: Final[dict[str, str]] = {
    "BaseCommand": "type:1:i connected:3:Empty subscribe:4:Subscribe message:9:Message "
    "ack:10:Ack flow:11:Flow success:13:Request error:14:Error close_consumer:16:CloseConsumer "
    "ping:18:Empty pong:19:Empty lookup:23:Lookup lookup_response:24:LookupResponse "
    "last_id:29:LastId last_id_response:30:LastIdResponse auth_challenge:36:Empty "
    "auth_response:37:AuthResponse",
    "Empty": "",
    "MessageId": "ledger_id:1:i entry_id:2:i batch_index:4:i",
    "Subscribe": "topic:1:b subscription:2:b kind:3:i consumer_id:4:i request_id:5:i durable:8:i "
    "start:9:MessageId force_topic_creation:15:i",
    "Message": "consumer_id:1:i message_id:2:MessageId",
    "Ack": "consumer_id:1:i kind:2:i message_id:3:MessageId",
    "Flow": "consumer_id:1:i permits:2:i",
    "Request": "request_id:1:i",
    "Error": "request_id:1:i error:2:i message:3:b",
    "CloseConsumer": "consumer_id:1:i request_id:2:i",
    "Lookup": "topic:1:b request_id:2:i authoritative:3:i",
    "LookupResponse": "url:1:b url_tls:2:b response:3:i request_id:4:i authoritative:5:i error:6:i "
    "message:7:b through_proxy:8:i",
    "LastId": "consumer_id:1:i request_id:2:i",
    "LastIdResponse": "last:1:MessageId request_id:2:i",
    "AuthResponse": "client_version:1:b response:2:AuthData protocol_version:3:i",
    "AuthData": "method:1:b data:2:b",
}
"""The fields of each message: name, number, and ``i`` (an integer), ``b`` (bytes) or a message."""


def _command_class() -> Any:
    """The class of ``BaseCommand`` with the fields of :data:`_FIELDS`."""
    package, kinds = "pyspark_pulsar.commands", FieldDescriptorProto
    file = FileDescriptorProto(name="commands.proto", package=package, syntax="proto2")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            field_name, number, kind = text.split(":")
            field = message.field.add(name=field_name, number=int(number))
            field.label = kinds.LABEL_OPTIONAL
            if kind in _FIELDS:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                field.type = kinds.TYPE_INT64 if kind == "i" else kinds.TYPE_BYTES
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"{package}.BaseCommand"))


_Command: Final = _command_class()
_parse: Final = _Command.FromString
_MessageId: Final = type(_Command().message.message_id)


def command_of(data: bytes | bytearray) -> Any:
    """The command that is encoded as ``data``. Raises :class:`ValueError` if it is none."""
    try:
        command = _parse(data)
    except DecodeError as error:
        raise ValueError("this is no command") from error
    if not command.type:
        raise ValueError("this is no command")
    return command


def entry_place(ledger_id: int, entry_id: int | None) -> bytes:
    """The begin of an encoded ``MessageIdData``: the ledger id, and the entry id if it is given."""
    encoded: bytes = _MessageId(ledger_id=ledger_id, entry_id=entry_id).SerializeToString()
    return encoded


def lookup_frame(topic: str, request_id: int, *, is_authoritative: bool) -> bytes:
    """LOOKUP: which broker has the topic?"""
    command = _Command(type=CommandType.LOOKUP)
    command.lookup.topic = topic.encode()
    command.lookup.request_id = request_id
    command.lookup.authoritative = int(is_authoritative)
    return _frame(command)


def subscribe_frame(topic: str, name: str, request_id: int, start: tuple[int, int]) -> bytes:
    """SUBSCRIBE of a reader: exclusive, not durable, and without creating the topic.

    Brokers send the entry ``start`` (ledger id, entry id) and what follows it.
    """
    command = _Command(type=CommandType.SUBSCRIBE)
    asked = command.subscribe
    asked.topic, asked.subscription, asked.kind = topic.encode(), name.encode(), _EXCLUSIVE
    asked.consumer_id, asked.request_id = CONSUMER_ID, request_id
    asked.durable = asked.force_topic_creation = 0
    asked.start.ledger_id, asked.start.entry_id = start
    return _frame(command)


def flow_frame(permits: int) -> bytes:
    """FLOW: the broker may send so many more messages, from 1 to :data:`PERMITS_MAX`."""
    command = _Command(type=CommandType.FLOW)
    command.flow.consumer_id, command.flow.permits = CONSUMER_ID, permits
    return _frame(command)


def ack_frame(ledger_id: int, entry_id: int) -> bytes:
    """ACK of everything up to this entry: the broker's statistics then show what a reader has."""
    command = _Command(type=CommandType.ACK)
    acked = command.ack
    acked.consumer_id, acked.kind = CONSUMER_ID, _CUMULATIVE
    acked.message_id.ledger_id, acked.message_id.entry_id = ledger_id, entry_id
    return _frame(command)


def last_message_id_frame(request_id: int) -> bytes:
    """GET_LAST_MESSAGE_ID: which is the last message of the topic?"""
    command = _Command(type=CommandType.GET_LAST_MESSAGE_ID)
    command.last_id.consumer_id, command.last_id.request_id = CONSUMER_ID, request_id
    return _frame(command)


def close_consumer_frame(request_id: int) -> bytes:
    """CLOSE_CONSUMER."""
    command = _Command(type=CommandType.CLOSE_CONSUMER)
    command.close_consumer.consumer_id = CONSUMER_ID
    command.close_consumer.request_id = request_id
    return _frame(command)


def auth_response_frame(method: str, data: str) -> bytes:
    """AUTH_RESPONSE: the present credentials, after an AUTH_CHALLENGE."""
    command = _Command(type=CommandType.AUTH_RESPONSE)
    answer = command.auth_response
    answer.client_version, answer.protocol_version = CLIENT_VERSION, PROTOCOL_VERSION
    answer.response.method, answer.response.data = method.encode(), data.encode()
    return _frame(command)


def _frame(command: Any) -> bytes:
    encoded: bytes = command.SerializeToString()
    return (len(encoded) + 4).to_bytes(4, "big") + len(encoded).to_bytes(4, "big") + encoded


def _empty_frame(kind: CommandType, field: str) -> bytes:
    command = _Command(type=kind)
    getattr(command, field).SetInParent()
    return _frame(command)


PING_FRAME: Final = _empty_frame(CommandType.PING, "ping")
PONG_FRAME: Final = _empty_frame(CommandType.PONG, "pong")


def error_text(code: int, message: bytes) -> str:
    """An error as one line: Pulsar's name of the code, and the first line of its message."""
    name = ERROR_NAMES[code] if 0 <= code < len(ERROR_NAMES) else f"error {code}"
    text = message.decode("utf-8", "replace").split("\n", 1)[0]
    return f"{name}: {text}" if text else name


def lookup_answer(answer: Any, *, is_tls: bool) -> LookupAnswer:
    """What a LOOKUP_RESPONSE that did not fail says, to a client that uses TLS or does not."""
    return LookupAnswer(
        (answer.url_tls if is_tls else answer.url).decode("utf-8", "replace"),
        answer.response == LookupType.REDIRECT,
        bool(answer.authoritative),
        bool(answer.through_proxy),
    )
