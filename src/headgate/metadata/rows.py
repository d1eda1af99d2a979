"""The rows of the catalog, as the store keeps them.

A row is a frozen value; its stored form is JSON, so that fields can be added (absent = default)
and a person can read the file. ``Kind`` is the row's kind in the store; ``ROW_TYPES`` says which
value belongs to which kind. Numbers of kinds are names, so nothing needs renumbering.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from headgate.metadata.policies import NamespacePolicies, TopicPolicies


class Kind(StrEnum):
    """What a row is about, and what its key looks like."""

    COUNTER = "counter"
    """``topic_number`` -> the highest number ever given to a topic; ``revision`` -> how many
    changes were planned until the last one that is stored."""
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
    """Full base name of a topic, partitioned or not -> SchemaRow."""
    SETTING = "setting"
    """Name of a dynamic setting -> SettingRow."""
    LOG_TIME = "log_time"
    """``mark`` -> LogTimeRow."""


class CounterRow(Struct, frozen=True):
    """The highest number given out so far."""

    value: int


class IdentityRow(Struct, frozen=True):
    """What binds the metadata to the logs of their data directory."""

    data_id: str = ""
    """32 hexadecimal digits, the same in every log; empty before the first start."""
    starts_by_log: Mapping[str, int] = field(default_factory=dict)
    """How often each log was opened for a broker; without one that never was."""
    accepted_loss: str = ""
    """``metadata`` or ``log``: what the operator gives up; the next start does it and forgets."""


class ClusterRow(Struct, frozen=True):
    """A cluster that exists. Its addresses are the broker's present ones, so none are stored."""


class TenantRow(Struct, frozen=True, rename="camel"):
    """Who administers a tenant and in which clusters it may have namespaces."""

    admin_roles: tuple[str, ...] = ()
    allowed_clusters: tuple[str, ...] = ()


class Bundles(Struct, frozen=True, rename="camel"):
    """A namespace's hash ranges. One broker owns them all; they are shown as clients expect."""

    boundaries: tuple[str, ...]
    num_bundles: int


class NamespaceRow(Struct, frozen=True, kw_only=True):
    """A namespace and what is set on it."""

    bundles: Bundles
    clusters: tuple[str, ...]
    """Its replication clusters: always the one cluster that this broker is."""
    policies: NamespacePolicies = NamespacePolicies()
    properties: Mapping[str, str] = field(default_factory=dict)


class TopicRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A topic that holds messages."""

    name: str
    """Full name, as its key."""
    number: int
    """How the commit log knows it. Given once, never again: also its incarnation number."""
    created_ms: int
    """Milliseconds since the epoch."""
    properties: Mapping[str, str] = field(default_factory=dict)
    lacks_subscriptions: bool = field(default=False, name="joining")
    """A new partition that may not have all subscriptions of the older ones."""
    log: str = ""
    """The log that holds its messages; empty for the main one."""

    @property
    def incarnation(self) -> int:
        """Differs between two topics that had the same name one after the other."""
        return self.number


class PartitionedRow(Struct, frozen=True, kw_only=True):
    """A partitioned topic: its partitions are topics of their own."""

    partitions: int
    created_ms: int
    properties: Mapping[str, str] = field(default_factory=dict)


class SchemaRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a topic's messages are, in the words of the client that said it first."""

    type: int
    """``Schema.Type`` of the protocol."""
    name: str
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)


class SettingRow(Struct, frozen=True):
    """A dynamic setting's value, as the text that the admin gave."""

    value: str


class LogTimeRow(Struct, frozen=True, kw_only=True):
    """One instant by which a start finds the time of the log (see headgate.base.log_time), and what
    bounds receive times that are older than that time."""

    machine: str
    """The boot of the machine; empty when it is not known."""
    running_ns: int
    """How long the machine was up."""
    wall_ns: int
    skew_ms: int
    """How far the wall clock was ahead of the time of the log."""
    bound_before_segment: int
    """What is in segments before this one ..."""
    bound_received_ms: int
    """... was received by then at the latest."""


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
    Kind.SETTING: SettingRow,
    Kind.LOG_TIME: LogTimeRow,
}
