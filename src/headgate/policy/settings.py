"""Every setting that Headgate supports: Pulsar's key names, types, defaults and meaning.

This table is the only source. ``broker.conf``, ``--set``, the dynamic configuration of the admin
API, ``brokers/configuration/runtime`` and the reference page derive from it. ``dynamic`` settings
can be changed while the broker runs, and each takes effect at once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from headgate.base.units import GIB, INT64_MAX, KIB, MIB
from headgate.metadata.checks import PARTITIONS_MAX
from headgate.policy.authentication_settings import authentication_problems
from headgate.policy.authorization_settings import authorization_problems
from headgate.policy.metric_labels import METRIC_LABELS
from headgate.policy.revocation_settings import revocation_problems
from headgate.policy.setting_info import (
    SettingInfo,
    count_setting,
    port_setting,
    rate_setting,
    setting,
    share_setting,
)
from headgate.policy.subscription_settings import SubscriptionSettings


@dataclass(slots=True)
class Settings(SubscriptionSettings):
    """The values in force. Field names are Pulsar's keys. Those of security are inherited."""

    clusterName: str = setting("standalone", "Name of the cluster that this broker is.")
    brokerServicePort: int = port_setting(
        6650,
        "Port of the binary protocol without TLS; 0 picks a free one, -1 or an empty value in the "
        "file is none.",
    )
    webServicePort: int = port_setting(
        8080,
        "Port of the admin API and /metrics without TLS; 0 picks a free one, -1 or an empty value "
        "in the file is none.",
    )
    bindAddress: str = setting(
        "127.0.0.1",
        "Address of the listening ports. An address that other machines reach needs "
        "authentication, or the option --insecure-listen: else the broker does not start.",
    )
    advertisedAddress: str = setting(
        "",
        "Host name that lookups tell clients; empty means the bind address, or this host's name.",
    )
    headgateWebHostNames: str = setting(
        "",
        "Further host names of the web port, with commas between them; *.example.com is every name "
        "below example.com, * any name. Loopback names, the advertised address, this host's name "
        "and IP addresses are always allowed. Requests to other names are refused, because a web "
        "page may have sent them.",
    )
    headgatePageEnabled: bool = setting(
        True,
        "Serve the page that shows backlogs and their causes below /headgate/ of the web port. It "
        "shows to each user what that user may read.",
    )
    keepAliveIntervalSeconds: int = setting(
        30,
        "The broker pings a connection that is silent this long, and closes it if it stays silent.",
        minimum=1,
    )
    maxMessageSize: int = setting(
        5 * 1024 * 1024,
        "Largest message in bytes, metadata and payload.",
        minimum=1_024,
        maximum=1 << 30,
    )
    headgateMaxCommandBytes: int = setting(
        256 * KIB,
        "Largest command in bytes, without the payload of a send: mostly the names, properties and "
        "schema of a producer or consumer. Acknowledgements and redeliveries may be as long as the "
        "largest message.",
        minimum=64 * KIB,
        maximum=1 << 30,
    )
    maxPendingPublishRequestsPerConnection: int = setting(
        1_000,
        "Sends of one connection that are submitted to the log and not yet answered. Further sends "
        "are parked, and the broker still reads the socket. 0 is no limit.",
        dynamic=True,
    )
    maxMessagePublishBufferSizeInMB: int = setting(
        64,
        "Megabytes of sends of all connections that are not yet durable, before reading pauses. "
        "Also the bound for parked sends: beyond it the broker stops reading the connection that "
        "parks most if they wait for a publish limit, and closes the producer that parks most if "
        "they wait for a backlog quota; of tenants that are not those that park most only beyond "
        "a quarter more.",
    )
    maxConcurrentLookupRequest: int = setting(
        50_000,
        "Lookups that may wait for the creation of a topic; more are refused.",
        minimum=1,
    )
    headgateClientMemoryMB: int = setting(
        0,
        "Megabytes that all connections together may make the broker hold: buffers, answers that "
        "they do not read, producers and consumers with their descriptions, positions of "
        "unacknowledged messages. Beyond it the broker slows and then closes those that hold "
        "most, first of the roles whose connections together hold most. 0 is a fourth of the "
        "memory that the broker may use (headgateMemoryLimitMB), at least 128.",
    )
    headgateHttpMemoryMB: int = setting(
        64,
        "Megabytes that all requests at the web port together may make the broker hold: bodies, "
        "requests sent ahead, answers in the making, answers that clients do not read. Beyond it "
        "the connection that holds most ends, and requests with large answers wait or are refused "
        "(503).",
        dynamic=True,
        minimum=8,
    )
    maxConcurrentHttpRequests: int = setting(
        1_024,
        "Requests at the web port that are answered at the same time; more are refused (503). One "
        "address has as many as are left for others: half of them, or half of the rest.",
        dynamic=True,
        minimum=1,
    )
    maxHttpServerConnections: int = setting(
        2_048,
        "Connections to the web ports; more are refused. One address has as many as are left for "
        "others: half of them, or half of the rest.",
        dynamic=True,
        minimum=2,
    )
    httpRequestsLimitEnabled: bool = setting(
        False, "Enforce httpRequestsMaxPerSecond.", dynamic=True
    )
    httpRequestsMaxPerSecond: float = setting(
        100.0,
        "Requests in any second, of all clients together, that the web ports accept; more get "
        "status 429.",
        dynamic=True,
        minimum=1,
    )
    brokerMaxConnections: int = count_setting(
        "Connections of clients that the broker accepts; more are refused. 0 and -1 are no limit. "
        "Those to the web port do not count.",
    )
    brokerMaxConnectionsPerIp: int = count_setting(
        "Connections that the broker accepts from one IP address; 0 and -1 are no limit.",
    )
    maxNamespacesPerTenant: int = count_setting(
        "Namespaces of each tenant; 0 and -1 are no limit.",
    )
    headgatePoliciesRaiseCounts: bool = setting(
        True,
        "Policies of namespaces and topics may set higher limits on numbers (of topics, "
        "subscriptions, clients and unacknowledged messages) than the broker's settings, or none. "
        "If false, they can only set lower ones: for tenants whose administrators are strangers.",
    )
    maxTopicsPerNamespace: int = count_setting(
        "Topics of each namespace without a policy; each partition is one, system topics do not "
        "count. 0 and -1 are no limit.",
    )
    maxSubscriptionsPerTopic: int = count_setting(
        "Durable subscriptions of each topic or partition without a policy; 0 and -1 are no limit.",
    )
    headgateMaxSubscriptionsPerTenant: int = count_setting(
        "Durable subscriptions of all topics of each tenant together, where each partition has its "
        "own. One takes 5 to 15 KiB of memory. 0 and -1 are no limit.",
    )
    headgateMaxStoragePerTenantMB: int = count_setting(
        "What all topics of each tenant store together, in MB: retained messages with 44 bytes for "
        "each entry. Beyond it the tenant's producers are closed, and refused until it is down to "
        "95 %. No policy raises it. 0 and -1 are no limit.",
    )
    maxProducersPerTopic: int = count_setting(
        "Connected producers of each topic or partition without a policy; 0 and -1 are no limit.",
    )
    maxConsumersPerTopic: int = count_setting(
        "Connected consumers and readers of each topic or partition without a policy; 0 and -1 "
        "are no limit.",
    )
    maxConsumersPerSubscription: int = count_setting(
        "Connected consumers of each Shared or Failover subscription without a policy; 0 and -1 "
        "are no limit.",
    )
    allowAutoTopicCreation: bool = setting(
        True, "A producer or consumer creates the topic that it names.", dynamic=True
    )
    allowAutoTopicCreationType: str = setting(
        "non-partitioned",
        "Type of the created topic.",
        dynamic=True,
        choices=("non-partitioned", "partitioned"),
    )
    defaultNumPartitions: int = setting(
        1,
        "Partitions of a topic that is created partitioned.",
        dynamic=True,
        minimum=1,
        maximum=PARTITIONS_MAX,
    )
    brokerDeleteInactiveTopicsEnabled: bool = setting(
        True,
        "Topics without producers, subscriptions and retained messages are deleted.",
        dynamic=True,
    )
    brokerDeleteInactiveTopicsFrequencySeconds: int = setting(
        60,
        "Seconds between two searches for inactive topics, and how long a topic must be inactive "
        "before it is deleted.",
        dynamic=True,
        minimum=1,
    )
    defaultRetentionTimeInMinutes: int = setting(
        0, "Minutes that acknowledged messages are kept; -1 for ever.", minimum=-1
    )
    defaultRetentionSizeInMB: int = setting(
        0, "Megabytes of acknowledged messages kept per topic; -1 without bound.", minimum=-1
    )
    retentionCheckIntervalInSeconds: int = setting(
        60,
        "Seconds between two trims of all topics; one second while the disk is full.",
        minimum=1,
    )
    backlogQuotaCheckEnabled: bool = setting(
        True,
        "Enforce backlog quotas; false only shows their limits in stats and on /metrics, and "
        "no producer is stopped and nothing is evicted.",
    )
    backlogQuotaCheckIntervalInSeconds: int = setting(
        60,
        "Seconds between two verifications of all quotas. Quotas are enforced for every message, "
        "so what a verification finds is a defect, and is counted.",
        minimum=1,
    )
    backlogQuotaDefaultLimitGB: float = setting(
        -1.0,
        "backlogQuotaDefaultLimitBytes in gigabytes; a value above 0 replaces it. Deprecated.",
        minimum=-1,
        maximum=INT64_MAX // GIB,
    )
    backlogQuotaDefaultLimitBytes: int = setting(
        -1,
        "Largest backlog of a topic without a policy, in bytes; -1 is no limit.",
        minimum=-1,
        maximum=INT64_MAX,
    )
    backlogQuotaDefaultLimitSecond: int = setting(
        -1,
        "Largest age of the oldest unacknowledged message of a topic without a policy, in seconds; "
        "-1 and 0 are no limit.",
        minimum=-1,
    )
    backlogQuotaDefaultRetentionPolicy: str = setting(
        "producer_request_hold",
        "Action at the default limits of size and age.",
        choices=("producer_request_hold", "producer_exception", "consumer_backlog_eviction"),
    )
    preciseTimeBasedBacklogQuotaCheck: bool = setting(False, "No effect: ages are always precise.")
    headgateHoldParkMs: int = setting(
        20_000,
        "Milliseconds that a held producer's messages wait before the broker closes it; keep this "
        "below the clients' send timeout. 0 closes producers at once, as Pulsar does.",
        dynamic=True,
    )
    headgateMaxParkedBytesPerConnection: int = setting(
        8 * MIB,
        "Bytes of parked sends of one connection, plus 160 for each: sends that wait for a publish "
        "limit, a backlog quota or room on the disk. Beyond that the broker stops reading the "
        "connection if they wait for a limit, and closes the producer that parks most if they wait "
        "for a quota or a full disk.",
        dynamic=True,
        minimum=1,
    )
    managedLedgerCacheSizeMB: int = setting(
        64, "Memory for recent and read-ahead entries, in megabytes.", minimum=1
    )
    managedLedgerMaxSizePerLedgerMbytes: int = setting(
        2_048, "A topic's ledger (a range of message ids) ends at this size.", minimum=1
    )
    managedLedgerMaxLedgerRolloverTimeMinutes: int = setting(
        240, "A topic's ledger ends at this age, so that retention can remove it.", minimum=1
    )
    headgateIndexCacheSizeMB: int = setting(
        32,
        "Most memory of each log, in megabytes, for the index of stored messages that are neither "
        "new nor in the cache of messages. The index lies on the disk; a thousand readers far "
        "behind need about 20 MB of it at a time. With less they read it again and again.",
        minimum=4,
    )
    headgateRewriteBytesPerSecond: int = setting(
        16 * MIB,
        "Most bytes that each log writes in a second to copy retained messages out of segments "
        "that hold little else, so that their disk is freed. 0 copies nothing.",
        dynamic=True,
        minimum=0,
    )
    managedLedgerInactiveLedgerRolloverTimeSeconds: int = setting(
        3_600,
        "A topic's ledger ends when nothing was published for so many seconds, so that an idle "
        "topic keeps no room that nothing needs; 0 leaves it open.",
        minimum=0,
    )
    maxUnackedMessagesPerConsumer: int = setting(
        50_000, "Unacknowledged messages at which a shared consumer gets no more; 0 is no limit."
    )
    maxUnackedMessagesPerSubscription: int = setting(
        200_000,
        "Unacknowledged messages at which a shared subscription gets no more; 0 is no limit.",
    )
    activeConsumerFailoverDelayTimeMillis: int = setting(
        1_000,
        "Milliseconds that a newly active failover consumer waits for the last one's acks.",
    )
    dispatchThrottlingRateInMsg: int = rate_setting(
        "Messages per second that the whole broker delivers; 0 is no limit."
    )
    dispatchThrottlingRateInByte: int = rate_setting(
        "Bytes per second that the whole broker delivers; 0 is no limit.",
        maximum=INT64_MAX,
    )
    dispatchThrottlingRatePerTopicInMsg: int = rate_setting(
        "Messages per second that each topic delivers; 0 is no limit."
    )
    dispatchThrottlingRatePerTopicInByte: int = rate_setting(
        "Bytes per second that each topic delivers; 0 is no limit.",
        maximum=INT64_MAX,
    )
    dispatchThrottlingRatePerSubscriptionInMsg: int = rate_setting(
        "Messages per second that each subscription delivers; 0 is no limit."
    )
    dispatchThrottlingRatePerSubscriptionInByte: int = rate_setting(
        "Bytes per second that each subscription delivers; 0 is no limit.",
        maximum=INT64_MAX,
    )
    dispatchThrottlingRateRelativeToPublishRate: bool = setting(
        False,
        "Add the publish rate to the broker's six dispatch rates (PIP-52). Policies have a "
        "separate flag.",
        dynamic=True,
    )
    dispatchThrottlingOnBatchMessageEnabled: bool = setting(
        False, "Count a batch as one message against the limits.", dynamic=True
    )
    dispatchThrottlingOnNonBacklogConsumerEnabled: bool = setting(
        True,
        "Apply limits to all subscriptions; false spares those that are caught up.",
        dynamic=True,
    )
    managedLedgerCursorBackloggedThreshold: int = setting(
        1_000,
        "Waiting entries above which limits apply again to a subscription that was spared.",
    )
    maxPublishRatePerTopicInMessages: int = rate_setting(
        "Messages per second that each topic or partition without a policy accepts; 0 is no limit."
    )
    maxPublishRatePerTopicInBytes: int = rate_setting(
        "Bytes per second that each topic or partition without a policy accepts; 0 is no limit.",
        maximum=INT64_MAX,
    )
    brokerPublisherThrottlingMaxMessageRate: int = rate_setting(
        "Messages per second that the whole broker accepts; 0 is no limit."
    )
    brokerPublisherThrottlingMaxByteRate: int = rate_setting(
        "Bytes per second that the whole broker accepts; 0 is no limit.",
        maximum=INT64_MAX,
    )
    adaptivePublisherThrottlingEnabled: bool = setting(
        False,
        "Slow producers down, topic by topic, while memory or a topic's backlog quota runs short. "
        "Experimental; takes effect at a start.",
    )
    adaptivePublisherThrottlingObserveOnly: bool = setting(
        False,
        "Compute, log and measure every decision, and limit no producer. True releases all topics "
        "at once: the emergency switch.",
        dynamic=True,
    )
    adaptivePublisherThrottlingIntervalMs: int = setting(
        1_000,
        "Milliseconds between two cycles of the controller.",
        dynamic=True,
        minimum=10,
        maximum=600_000,
    )
    adaptivePublisherThrottlingMemoryHighWatermarkPct: float = share_setting(
        0.85, "Share of the memory that the broker may use at which its pressure is full (1.0)."
    )
    adaptivePublisherThrottlingMemoryLowWatermarkPct: float = share_setting(
        0.70,
        "Share of that memory up to which its pressure is 0; must be below the high watermark.",
        excluded=(0, 1),
    )
    adaptivePublisherThrottlingBacklogHighWatermarkPct: float = share_setting(
        0.90,
        "Share of a topic's backlog quota at which its pressure is full (1.0). Topics without a "
        "quota have none.",
    )
    adaptivePublisherThrottlingBacklogLowWatermarkPct: float = share_setting(
        0.75,
        "Share of a topic's backlog quota up to which its pressure is 0; must be below the high "
        "watermark.",
        excluded=(0, 1),
    )
    adaptivePublisherThrottlingMinRateFactor: float = share_setting(
        0.10,
        "The floor: law `pressure` leaves a topic at least this share of its natural publish rate.",
    )
    adaptivePublisherThrottlingMaxRateChangeFactor: float = share_setting(
        0.25,
        "The step: a limit moves by at most this share of the natural rate in an interval; with "
        "law `drain` it may fall faster.",
    )
    adaptivePublisherThrottlingPerTopicMetricsEnabled: bool = setting(
        False,
        "Add six series for each topic to /metrics; check the number of topics first.",
        dynamic=True,
    )
    adaptivePublisherThrottlingLaw: str = setting(
        "pressure",
        "Law of a topic's limit: by the pressures, or by the drain rate of its backlog.",
        dynamic=True,
        choices=("pressure", "drain"),
    )
    adaptivePublisherThrottlingDrainSetPointPct: float = share_setting(
        0.70,
        "Share of a topic's backlog quota at which law `drain` keeps the backlog.",
        excluded=(0, 1),
    )
    adaptivePublisherThrottlingDrainHorizonMs: int = setting(
        10_000,
        "Milliseconds in which law `drain` brings the backlog to its set point.",
        dynamic=True,
        minimum=100,
        maximum=600_000,
    )
    headgateMemoryLimitMB: int = setting(
        0,
        "Megabytes of memory that the broker may use: the memory watermarks refer to it, and above "
        "80 % of it clients get less of headgateClientMemoryMB and headgateHttpMemoryMB. 0 is the "
        "limit of the control group, or else the machine's memory.",
    )
    exposeTopicLevelMetricsInPrometheus: bool = setting(
        True,
        "Series of each topic and subscription on /metrics; false leaves sums for each namespace.",
        dynamic=True,
    )
    headgateMetricsSubjectsMax: int = setting(
        5_000,
        "Topics and subscriptions together that have series of their own on /metrics: those with "
        "the largest backlogs, those that are throttled or stopped by a quota now, those with the "
        "highest rates; a tenant with very many leaves room to others. Of the rest /metrics has "
        "sums for each namespace. 0 is no bound: a page has 6 KB for each.",
        dynamic=True,
    )
    metricsServletTimeoutMs: int = setting(
        30_000,
        "Milliseconds that a scrape of /metrics waits for its page before it gets an error; 0 is "
        "no bound.",
        dynamic=True,
    )
    exposeSubscriptionBacklogAgeInPrometheus: bool = setting(
        False,
        "The age of each durable subscription's oldest unacknowledged message on /metrics.",
        dynamic=True,
    )
    exposeCustomTopicMetricLabelsEnabled: bool = setting(
        False,
        "Properties of topics that allowedTopicPropertyKeysForMetrics names are labels of the "
        "topics' series on /metrics, and attributes by OpenTelemetry.",
        dynamic=True,
    )
    allowedTopicPropertyKeysForMetrics: str = setting(
        "",
        "The properties of topics that become labels, with commas between them. Choose those that "
        "have few values.",
        dynamic=True,
        rule=METRIC_LABELS,
    )
    splitTopicAndPartitionLabelInPrometheus: bool = setting(
        False,
        "On /metrics a partition's series have the partitioned topic as topic and the number as "
        "partition, -1 for a topic without partitions.",
    )
    headgateTelemetryEnabled: bool = setting(True, "Publish the telemetry records.")
    headgateTelemetryTopic: str = setting(
        "persistent://headgate/telemetry/samples",
        "Topic of the telemetry records. Only the broker may produce to it, and it is exempt from "
        "limits.",
    )
    headgateTelemetryIntervalMs: int = setting(
        10_000,
        "Milliseconds between telemetry records; divides 60,000.",
        minimum=1_000,
        maximum=60_000,
    )
    headgateTelemetryNames: str = setting(
        "plain",
        "Names of tenants, namespaces, topics and subscriptions in the records: plain, or a keyed "
        "hash of each.",
        choices=("plain", "hash"),
    )
    headgateTelemetryNamesKeyFile: str = setting(
        "",
        "File with the key of hashed names, at least 16 bytes; empty for a key that the broker "
        "makes once in the data directory.",
    )
    headgateTelemetryRetentionMinutes: int = setting(
        4_320, "Minutes that telemetry is kept.", minimum=1
    )
    headgateTelemetryRetentionSizeInMB: int = setting(
        1_024, "Megabytes of telemetry that are kept.", minimum=1
    )

    def set(self, name: str, text: str) -> None:
        """Assign from text.

        Raises:
            KeyError: no such setting.
            SettingError: the value is not allowed.
        """
        setattr(self, name, SETTINGS[name].parse(text))

    def text(self, name: str) -> str:
        """The value as ``broker.conf`` would write it."""
        value = getattr(self, name)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def shown(self, name: str) -> str:
        """:meth:`text`, without a secret."""
        return SETTINGS[name].shown(self.text(name))


SETTINGS: dict[str, SettingInfo] = {
    f.name: SettingInfo(name=f.name, default=f.default, **f.metadata)  # type: ignore[arg-type]
    for f in sorted(fields(Settings), key=lambda f: f.name not in Settings.__annotations__)
}
"""Every setting by its key: those of the table above, then those that it inherits."""


class Watermarks(NamedTuple):
    """A pair of settings of which the first must be below the second."""

    low: str
    high: str


WATERMARKS = tuple(
    Watermarks(
        f"adaptivePublisherThrottling{what}LowWatermarkPct",
        f"adaptivePublisherThrottling{what}HighWatermarkPct",
    )
    for what in ("Memory", "Backlog")
)


def crossed_watermarks(settings: Settings) -> list[Watermarks]:
    """The pairs whose low watermark is not below the high one."""
    return [
        pair for pair in WATERMARKS if getattr(settings, pair.low) >= getattr(settings, pair.high)
    ]


def watermark_problem(settings: Settings, pair: Watermarks, name: str) -> str:
    """A sentence about one setting of a crossed pair: its value, and what the other one allows."""
    if name == pair.low:
        allowed = f"a number above 0 and below {pair.high} ({settings.text(pair.high)})"
    else:
        allowed = f"a number above {pair.low} ({settings.text(pair.low)}) and up to 1"
    return f"{name}={settings.text(name)!r} is not allowed; use {allowed}"


def inconsistencies(settings: Settings) -> list[str]:
    """A sentence for each conflict between values that are allowed alone."""
    crossed = crossed_watermarks(settings)
    return [
        *(watermark_problem(settings, pair, pair.low) for pair in crossed),
        *authentication_problems(settings),
        *authorization_problems(settings),
        *revocation_problems(settings),
    ]
