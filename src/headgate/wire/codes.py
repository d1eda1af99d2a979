"""The protocol's enumerations under plain names.

Their values are the wire contract; a test compares each enumeration with the generated code. All
are :class:`enum.IntEnum`, so a number from a decoded command compares equal to a member, works as a
dictionary key beside members, and costs no conversion on the hot path.
"""

from __future__ import annotations

import enum

from headgate.base.schema_types import SchemaType as SchemaType


class CommandType(enum.IntEnum):
    """The command in a frame. Numbers 41-49 and 69 were never assigned."""

    CONNECT = 2
    CONNECTED = 3
    SUBSCRIBE = 4
    PRODUCER = 5
    SEND = 6
    SEND_RECEIPT = 7
    SEND_ERROR = 8
    MESSAGE = 9
    ACK = 10
    FLOW = 11
    UNSUBSCRIBE = 12
    SUCCESS = 13
    ERROR = 14
    CLOSE_PRODUCER = 15
    CLOSE_CONSUMER = 16
    PRODUCER_SUCCESS = 17
    PING = 18
    PONG = 19
    REDELIVER_UNACKNOWLEDGED_MESSAGES = 20
    PARTITIONED_METADATA = 21
    PARTITIONED_METADATA_RESPONSE = 22
    LOOKUP = 23
    LOOKUP_RESPONSE = 24
    CONSUMER_STATS = 25
    CONSUMER_STATS_RESPONSE = 26
    REACHED_END_OF_TOPIC = 27
    SEEK = 28
    GET_LAST_MESSAGE_ID = 29
    GET_LAST_MESSAGE_ID_RESPONSE = 30
    ACTIVE_CONSUMER_CHANGE = 31
    GET_TOPICS_OF_NAMESPACE = 32
    GET_TOPICS_OF_NAMESPACE_RESPONSE = 33
    GET_SCHEMA = 34
    GET_SCHEMA_RESPONSE = 35
    AUTH_CHALLENGE = 36
    AUTH_RESPONSE = 37
    ACK_RESPONSE = 38
    GET_OR_CREATE_SCHEMA = 39
    GET_OR_CREATE_SCHEMA_RESPONSE = 40
    NEW_TXN = 50
    NEW_TXN_RESPONSE = 51
    ADD_PARTITION_TO_TXN = 52
    ADD_PARTITION_TO_TXN_RESPONSE = 53
    ADD_SUBSCRIPTION_TO_TXN = 54
    ADD_SUBSCRIPTION_TO_TXN_RESPONSE = 55
    END_TXN = 56
    END_TXN_RESPONSE = 57
    END_TXN_ON_PARTITION = 58
    END_TXN_ON_PARTITION_RESPONSE = 59
    END_TXN_ON_SUBSCRIPTION = 60
    END_TXN_ON_SUBSCRIPTION_RESPONSE = 61
    TC_CLIENT_CONNECT_REQUEST = 62
    TC_CLIENT_CONNECT_RESPONSE = 63
    WATCH_TOPIC_LIST = 64
    WATCH_TOPIC_LIST_SUCCESS = 65
    WATCH_TOPIC_UPDATE = 66
    WATCH_TOPIC_LIST_CLOSE = 67
    TOPIC_MIGRATED = 68
    SCALABLE_TOPIC_LOOKUP = 70
    SCALABLE_TOPIC_UPDATE = 71
    SCALABLE_TOPIC_CLOSE = 72
    SCALABLE_TOPIC_SUBSCRIBE = 73
    SCALABLE_TOPIC_SUBSCRIBE_RESPONSE = 74
    SCALABLE_TOPIC_ASSIGNMENT_UPDATE = 75
    WATCH_SCALABLE_TOPICS = 76
    WATCH_SCALABLE_TOPICS_UPDATE = 77
    WATCH_SCALABLE_TOPICS_CLOSE = 78
    WATCH_TC_ASSIGNMENTS = 79
    WATCH_TC_ASSIGNMENTS_UPDATE = 80
    WATCH_TC_ASSIGNMENTS_CLOSE = 81


class ServerError(enum.IntEnum):
    """The reason of a failure. Clients act on the number, so choose it with care.

    ``SERVICE_NOT_READY`` and ``TOO_MANY_REQUESTS`` in a lookup reply make clients drop the whole
    connection. The two backlog quota codes belong into the reply to PRODUCER and never into a
    SEND_ERROR: the first means "retry later", the second also fails what the client has pending.
    """

    UNKNOWN_ERROR = 0
    METADATA_ERROR = 1
    PERSISTENCE_ERROR = 2
    AUTHENTICATION_ERROR = 3
    AUTHORIZATION_ERROR = 4
    CONSUMER_BUSY = 5
    SERVICE_NOT_READY = 6
    PRODUCER_BLOCKED_QUOTA_EXCEEDED_ERROR = 7
    PRODUCER_BLOCKED_QUOTA_EXCEEDED_EXCEPTION = 8
    CHECKSUM_ERROR = 9
    UNSUPPORTED_VERSION_ERROR = 10
    TOPIC_NOT_FOUND = 11
    SUBSCRIPTION_NOT_FOUND = 12
    CONSUMER_NOT_FOUND = 13
    TOO_MANY_REQUESTS = 14
    TOPIC_TERMINATED_ERROR = 15
    PRODUCER_BUSY = 16
    INVALID_TOPIC_NAME = 17
    INCOMPATIBLE_SCHEMA = 18
    CONSUMER_ASSIGN_ERROR = 19
    TRANSACTION_COORDINATOR_NOT_FOUND = 20
    INVALID_TXN_STATUS = 21
    NOT_ALLOWED_ERROR = 22
    TRANSACTION_CONFLICT = 23
    TRANSACTION_NOT_FOUND = 24
    PRODUCER_FENCED = 25


class SubscriptionType(enum.IntEnum):
    """How the consumers of one subscription share its messages."""

    EXCLUSIVE = 0
    SHARED = 1
    FAILOVER = 2
    KEY_SHARED = 3


class InitialPosition(enum.IntEnum):
    """Where a subscription starts when it is created."""

    LATEST = 0
    EARLIEST = 1


class AckType(enum.IntEnum):
    """Whether an ACK names single entries or everything up to one."""

    INDIVIDUAL = 0
    CUMULATIVE = 1


class ProducerAccessMode(enum.IntEnum):
    """Whether a producer tolerates others on its topic."""

    SHARED = 0
    EXCLUSIVE = 1
    WAIT_FOR_EXCLUSIVE = 2
    EXCLUSIVE_WITH_FENCING = 3


class LookupResult(enum.IntEnum):
    """The results of a LOOKUP."""

    REDIRECT = 0
    CONNECT = 1
    FAILED = 2


class PartitionedMetadataResult(enum.IntEnum):
    """The results of a PARTITIONED_METADATA."""

    SUCCESS = 0
    FAILED = 1


class TopicListMode(enum.IntEnum):
    """Which topics GET_TOPICS_OF_NAMESPACE asks for."""

    PERSISTENT = 0
    NON_PERSISTENT = 1
    ALL = 2


class CompressionType(enum.IntEnum):
    """The compression of an entry's payload, which a broker passes on."""

    NONE = 0
    LZ4 = 1
    ZLIB = 2
    ZSTD = 3
    SNAPPY = 4
