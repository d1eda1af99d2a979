"""The rows of the catalog, as the store keeps them.

A row is a frozen value, stored as JSON: fields can be added (absent means the default), and a
person can read the file. ``Kind`` is the kind of a row; ``ROW_TYPES`` maps each kind to its type.
Kinds are names, so they never need renumbering.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from headgate.base.text_memory import texts_bytes
from headgate.metadata.grants import NamespaceGrants, SubscriptionGrants, TopicGrants
from headgate.metadata.policies import NamespacePolicies, TopicPolicies

TOPIC_NUMBER_MAX: Final = (1 << 32) - 1
"""The records of the log have 32 bits for the number of their topic."""


class Kind(StrEnum):
    """The kind of a row, with the form of its key."""

    COUNTER = "counter"
    """``topic_number`` -> the highest topic number ever assigned; ``revision`` -> the number of
    changes planned up to the last one stored."""
    IDENTITY = "identity"
    """``data`` -> IdentityRow."""
    CLUSTER = "cluster"
    """Cluster name -> ClusterRow."""
    TENANT = "tenant"
    """Tenant name -> TenantRow."""
    NAMESPACE = "namespace"
    """``tenant/namespace`` -> NamespaceRow."""
    TOPIC = "topic"
    """Full name of a topic that holds messages (a partition, or not partitioned) -> TopicRow."""
    PARTITIONED = "partitioned"
    """Full base name of a partitioned topic -> PartitionedRow."""
    TOPIC_POLICIES = "topic_policies"
    """Full base name of a topic, partitioned or not -> TopicPolicies."""
    SCHEMA = "schema"
    """Full base name of a topic, partitioned or not -> SchemaRow of its latest version."""
    SCHEMA_VERSION = "schema_version"
    """``NAME/VERSION`` of an earlier version, with the same name -> SchemaRow."""
    IDLE_SUBSCRIPTIONS = "idle_subscriptions"
    """Full name of a topic that holds messages -> IdleSubscriptionsRow."""
    NAMESPACE_GRANTS = "namespace_grants"
    """``tenant/namespace`` -> NamespaceGrants."""
    TOPIC_GRANTS = "topic_grants"
    """Full name of a topic, also of a partition or of none that exists -> TopicGrants."""
    SUBSCRIPTION_GRANTS = "subscription_grants"
    """``tenant/namespace/subscription`` -> SubscriptionGrants."""
    SETTING = "setting"
    """Name of a dynamic setting -> SettingRow."""
    LOG_TIME = "log_time"
    """``mark`` -> LogTimeRow."""


class CounterRow(Struct, frozen=True):
    """The highest number assigned so far."""

    value: int


class IdentityRow(Struct, frozen=True):
    """The identity that binds the metadata to the logs of its data directory."""

    data_id: str = ""
    """32 hexadecimal digits, the same in every log; empty before the first start."""
    starts_by_log: Mapping[str, int] = field(default_factory=dict)
    """How often a broker opened each log; logs that were never opened are absent."""
    accepted_loss: str = ""
    """``metadata`` or ``log``: the loss that the operator accepts for the next start. ``restore``
    after a restore from a backup: the next start gives new ids."""


class ClusterRow(Struct, frozen=True):
    """A cluster that exists. Its addresses are the broker's, so none are stored."""


class TenantRow(Struct, frozen=True, rename="camel"):
    """A tenant: its administrators, and the clusters in which it may have namespaces."""

    admin_roles: tuple[str, ...] = ()
    allowed_clusters: tuple[str, ...] = ()


class Bundles(Struct, frozen=True, rename="camel"):
    """A namespace's hash ranges, all owned by one broker."""

    boundaries: tuple[str, ...]
    num_bundles: int


class NamespaceRow(Struct, frozen=True, kw_only=True):
    """A namespace with its policies and properties."""

    bundles: Bundles
    clusters: tuple[str, ...]
    """Its replication clusters: always this broker's cluster only."""
    policies: NamespacePolicies = NamespacePolicies()
    properties: Mapping[str, str] = field(default_factory=dict)
    deleted: bool = False
    """Whether it is being deleted with its topics, so that none is created in it."""


class TopicRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A topic that holds messages."""

    name: str
    """The full name, which is also the key."""
    number: int
    """Its number in the commit log, never reused: also its incarnation number."""
    created_ms: int
    """Milliseconds since the epoch."""
    properties: Mapping[str, str] = field(default_factory=dict)
    lacks_subscriptions: bool = field(default=False, name="joining")
    """A new partition that may not have all subscriptions of the older ones."""
    log: str = ""
    """The log that holds its messages; empty for the main one."""
    epoch: int | None = None
    """The topic epoch of its last exclusive producer."""
    terminated: bool = False
    """Whether it takes no more messages."""

    @property
    def incarnation(self) -> int:
        """A number that distinguishes topics that had the same name one after the other."""
        return self.number


class PartitionedRow(Struct, frozen=True, kw_only=True):
    """A partitioned topic: its partitions are topics of their own."""

    partitions: int
    created_ms: int
    properties: Mapping[str, str] = field(default_factory=dict)


SCHEMA_ROW_BYTES: Final = 600
"""What a version takes in memory beside its definition: the row, its key and its places in tables.
A deleted schema leaves one such row."""


SCHEMA_PROPERTY_BYTES: Final = 100
"""What a property of a version takes in memory beside its bytes."""


class SchemaRow(Struct, frozen=True, kw_only=True, omit_defaults=True, weakref=True):
    """A version of a topic's schema, as its first client sent it."""

    type: int
    """``Schema.Type`` of the protocol."""
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    first: int = 0
    """The oldest version that the topic has: those before it were deleted."""
    created_ms: int = 0
    """Milliseconds since the epoch; 0 in rows of releases without versions."""
    is_deleted: bool = False
    """The schema was deleted: this version has no definition, and the topic has no other."""

    @property
    def size_bytes(self) -> int:
        """Bytes of its definition and properties, and of the row."""
        return schema_bytes(self.data, self.properties)


def schema_bytes(data: bytes, properties: Mapping[str, str]) -> int:
    """What a version with this definition takes in memory."""
    beside = SCHEMA_ROW_BYTES + SCHEMA_PROPERTY_BYTES * len(properties)
    return beside + len(data) + texts_bytes(properties)


class IdleSubscriptionsRow(Struct, frozen=True):
    """The durable subscriptions of a topic that have no consumer, so that a restart does not make
    them look used. Only topics whose subscriptions expire have such a row."""

    since_ms: Mapping[str, int] = field(default_factory=dict)
    """By name, the time of the log since when."""


class SettingRow(Struct, frozen=True):
    """A dynamic setting's value, as the admin's text."""

    value: str


class LogTimeRow(Struct, frozen=True, kw_only=True):
    """The mark from which a start continues the time of the log (see headgate.base.log_time), and
    the bound of receive times that are older than that time."""

    machine: str
    """The boot of the machine; empty when it is not known."""
    running_ns: int
    """Time since the machine booted."""
    wall_ns: int
    skew_ms: int
    """How far the wall clock was ahead of the time of the log."""
    bound_before_segment: int
    """The bound is for segments before this one."""
    bound_received_ms: int
    """The latest receive time in those segments."""


Row = (
    CounterRow
    | IdentityRow
    | ClusterRow
    | TenantRow
    | NamespaceRow
    | TopicRow
    | PartitionedRow
    | TopicPolicies
    | SchemaRow
    | IdleSubscriptionsRow
    | NamespaceGrants
    | TopicGrants
    | SubscriptionGrants
    | SettingRow
    | LogTimeRow
)
"""Any row."""

ROW_TYPES: Mapping[Kind, type[Row]] = {
    Kind.COUNTER: CounterRow,
    Kind.IDENTITY: IdentityRow,
    Kind.CLUSTER: ClusterRow,
    Kind.TENANT: TenantRow,
    Kind.NAMESPACE: NamespaceRow,
    Kind.TOPIC: TopicRow,
    Kind.PARTITIONED: PartitionedRow,
    Kind.TOPIC_POLICIES: TopicPolicies,
    Kind.SCHEMA: SchemaRow,
    Kind.SCHEMA_VERSION: SchemaRow,
    Kind.IDLE_SUBSCRIPTIONS: IdleSubscriptionsRow,
    Kind.NAMESPACE_GRANTS: NamespaceGrants,
    Kind.TOPIC_GRANTS: TopicGrants,
    Kind.SUBSCRIPTION_GRANTS: SubscriptionGrants,
    Kind.SETTING: SettingRow,
    Kind.LOG_TIME: LogTimeRow,
}
