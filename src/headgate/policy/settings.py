"""Every setting that Headgate supports: Pulsar's key names, types, defaults and meaning.

This table is the only place. ``broker.conf``, ``--set``, the dynamic configuration of the admin
API, ``brokers/configuration/runtime`` and the reference page all derive from it. ``dynamic``
settings can be changed while the broker runs, and every one of them takes effect at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any

from headgate.base.errors import InputError
from headgate.base.units import GIB, INT32_MAX, INT64_MAX, KIB, MIB
from headgate.metadata.checks import PARTITIONS_MAX

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
"""Nineteen digits are more than any setting may have."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?([eE][+-]?[0-9]{1,2})?")


class SettingError(InputError):
    """A setting's value is not allowed: the text names key, value and what is."""


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """What is known of one setting beside its value."""

    name: str
    default: bool | int | float | str
    dynamic: bool
    minimum: int | None
    maximum: int | None
    excluded: tuple[int, ...]
    """Ends of the range that are not in it themselves: none, the lower one, or both."""
    choices: tuple[str, ...]
    doc: str

    @property
    def allowed(self) -> str:
        """What may be written, in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, int):
            return f"an integer from {self.minimum} to {self.maximum}"
        if isinstance(self.default, float):
            if self.minimum not in self.excluded:
                return f"a number from {self.minimum} to {self.maximum}"
            upper = "below" if self.maximum in self.excluded else "up to"
            return f"a number above {self.minimum} and {upper} {self.maximum}"
        return " or ".join(self.choices) if self.choices else "any text"

    def parse(self, text: str) -> bool | int | float | str:
        """Read a value as written in ``broker.conf``.

        Raises:
            SettingError: it is not what :attr:`allowed` says.
        """
        value = text.strip()
        if isinstance(self.default, bool):
            if value.lower() in ("true", "false"):
                return value.lower() == "true"
        elif isinstance(self.default, int | float):
            # Python's int() alone would take 1_000 as well, and the digits of any script.
            is_whole = isinstance(self.default, int)
            if (_INTEGER if is_whole else _NUMBER).fullmatch(value):
                number = int(value) if is_whole else float(value)
                is_inside = (self.minimum or 0) <= number <= (self.maximum or 0)
                if is_inside and number not in self.excluded:
                    return number
        elif not self.choices or value in self.choices:
            return value
        raise SettingError(f"{self.name}={text!r} is not allowed: {self.allowed} is")


def _key(
    default: bool | int | float | str,
    doc: str,
    *,
    dynamic: bool = False,
    minimum: int = 0,
    maximum: int = INT32_MAX,
    excluded: tuple[int, ...] = (),
    choices: tuple[str, ...] = (),
) -> Any:
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    return field(
        default=default,
        metadata={
            "dynamic": dynamic,
            "minimum": minimum if is_number else None,
            "maximum": maximum if is_number else None,
            "excluded": excluded,
            "choices": choices,
            "doc": doc,
        },
    )


def _rate(doc: str, *, maximum: int = INT32_MAX) -> Any:
    """A rate of the broker's: dynamic, and off unless it is above 0."""
    return _key(0, doc, dynamic=True, minimum=-1, maximum=maximum)


def _share(default: float, doc: str, *, excluded: tuple[int, ...] = (0,)) -> Any:
    """A share of something, from 0 to 1 without the ends that are ``excluded``; dynamic."""
    return _key(default, doc, dynamic=True, maximum=1, excluded=excluded)


@dataclass(slots=True)
class Settings:
    """The values in force. Field names are Pulsar's keys."""

    clusterName: str = _key("standalone", "Name of the cluster that this broker is.")
    brokerServicePort: int = _key(
        6650, "Port of the binary protocol; 0 picks a free one.", maximum=65_535
    )
    webServicePort: int = _key(
        8080, "Port of the admin API and /metrics; 0 picks a free one.", maximum=65_535
    )
    bindAddress: str = _key(
        "127.0.0.1",
        "Address of the listening ports. There is no authentication yet: with any address but "
        "loopback, every client that reaches it can do everything.",
    )
    advertisedAddress: str = _key(
        "",
        "Host name that lookups tell clients; empty means the bind address, or this host's name.",
    )
    headgateWebHostNames: str = _key(
        "",
        "Further host names of the web port, with commas between them; *.example.com is every name "
        "below example.com, * any name. Loopback names, the advertised address, this host's name "
        "and IP addresses are always allowed. Requests to other names are refused, because a web "
        "page may have sent them.",
    )
    keepAliveIntervalSeconds: int = _key(
        30,
        "The broker pings a connection that is silent this long, and closes it if it stays silent.",
        minimum=1,
    )
    maxMessageSize: int = _key(
        5 * 1024 * 1024,
        "Largest message in bytes, metadata and payload.",
        minimum=1_024,
        maximum=1 << 30,
    )
    headgateMaxCommandBytes: int = _key(
        256 * KIB,
        "Largest command in bytes, without the payload of a send: mostly the names, properties and "
        "schema of a producer or consumer. Acknowledgements and redeliveries may be as long as the "
        "largest message.",
        minimum=64 * KIB,
        maximum=1 << 30,
    )
    maxPendingPublishRequestsPerConnection: int = _key(
        1_000,
        "Sends of one connection that are submitted to the log and not yet answered. Further sends "
        "are parked, and the broker still reads the socket. 0 is no limit.",
        dynamic=True,
    )
    maxMessagePublishBufferSizeInMB: int = _key(
        64,
        "Megabytes of sends of all connections that are not yet durable, before reading pauses. "
        "Also the bound for parked sends: beyond it the broker stops reading the connection that "
        "parks most if a publish limit holds them, and closes the producer that parks most if a "
        "backlog quota does.",
    )
    maxConcurrentLookupRequest: int = _key(
        50_000,
        "Lookups that may wait for the creation of a topic; more are refused.",
        minimum=1,
    )
    allowAutoTopicCreation: bool = _key(
        True, "A producer or consumer creates the topic that it names.", dynamic=True
    )
    allowAutoTopicCreationType: str = _key(
        "non-partitioned",
        "Type of the created topic.",
        dynamic=True,
        choices=("non-partitioned", "partitioned"),
    )
    defaultNumPartitions: int = _key(
        1,
        "Partitions of a topic that is created partitioned.",
        dynamic=True,
        minimum=1,
        maximum=PARTITIONS_MAX,
    )
    brokerDeleteInactiveTopicsEnabled: bool = _key(
        True,
        "Topics without producers, subscriptions and retained messages are deleted.",
        dynamic=True,
    )
    brokerDeleteInactiveTopicsFrequencySeconds: int = _key(
        60,
        "Seconds between two searches for inactive topics, and the inactive time that ends one.",
        dynamic=True,
        minimum=1,
    )
    defaultRetentionTimeInMinutes: int = _key(
        0, "Minutes that acknowledged messages are kept; -1 for ever.", minimum=-1
    )
    defaultRetentionSizeInMB: int = _key(
        0, "Megabytes of acknowledged messages kept per topic; -1 without bound.", minimum=-1
    )
    retentionCheckIntervalInSeconds: int = _key(
        60,
        "Seconds between two removals of messages that no retention covers; one second while the "
        "disk is full.",
        minimum=1,
    )
    backlogQuotaCheckEnabled: bool = _key(
        True,
        "Enforce backlog quotas; false only shows their limits in stats and on /metrics, and "
        "nothing is held or evicted.",
    )
    backlogQuotaCheckIntervalInSeconds: int = _key(
        60,
        "Seconds between two verifications of all quotas. Quotas are enforced for every message, "
        "so a verification finds nothing, or a defect, which it counts.",
        minimum=1,
    )
    backlogQuotaDefaultLimitGB: float = _key(
        -1.0,
        "The next key in gigabytes, which wins if it is above 0. Deprecated.",
        minimum=-1,
        maximum=INT64_MAX // GIB,
    )
    backlogQuotaDefaultLimitBytes: int = _key(
        -1,
        "Largest backlog of a topic without a policy, in bytes; -1 is no limit.",
        minimum=-1,
        maximum=INT64_MAX,
    )
    backlogQuotaDefaultLimitSecond: int = _key(
        -1,
        "Largest age of the oldest unacknowledged message of a topic without a policy, in seconds; "
        "-1 and 0 are no limit.",
        minimum=-1,
    )
    backlogQuotaDefaultRetentionPolicy: str = _key(
        "producer_request_hold",
        "Action at the two limits above.",
        choices=("producer_request_hold", "producer_exception", "consumer_backlog_eviction"),
    )
    preciseTimeBasedBacklogQuotaCheck: bool = _key(False, "No effect: ages are always precise.")
    headgateHoldParkMs: int = _key(
        20_000,
        "Milliseconds that a held producer's messages wait before the broker closes it; keep this "
        "below the clients' send timeout. 0 closes producers at once, as Pulsar does.",
        dynamic=True,
    )
    headgateMaxParkedBytesPerConnection: int = _key(
        8 * MIB,
        "Bytes of parked sends of one connection, plus 160 for each: sends that wait for a publish "
        "limit, a backlog quota or room on the disk. Beyond that the broker stops reading the "
        "connection if a limit holds them, and closes the producer that parks most if a quota or a "
        "full disk does.",
        dynamic=True,
        minimum=1,
    )
    managedLedgerCacheSizeMB: int = _key(
        64, "Memory for recent and read-ahead entries, in megabytes.", minimum=1
    )
    managedLedgerMaxSizePerLedgerMbytes: int = _key(
        2_048, "A topic's ledger (a range of message ids) ends at this size.", minimum=1
    )
    managedLedgerMaxLedgerRolloverTimeMinutes: int = _key(
        240, "A topic's ledger ends at this age, so that retention can remove it.", minimum=1
    )
    maxUnackedMessagesPerConsumer: int = _key(
        50_000, "Unacknowledged messages at which a shared consumer gets no more; 0 is no limit."
    )
    maxUnackedMessagesPerSubscription: int = _key(
        200_000,
        "Unacknowledged messages at which a shared subscription gets no more; 0 is no limit.",
    )
    activeConsumerFailoverDelayTimeMillis: int = _key(
        1_000,
        "Milliseconds that a newly active failover consumer waits for the last one's acks.",
    )
    dispatchThrottlingRateInMsg: int = _rate(
        "Messages per second that the whole broker delivers; 0 is no limit."
    )
    dispatchThrottlingRateInByte: int = _rate(
        "Bytes per second that the whole broker delivers; 0 is no limit.",
        maximum=INT64_MAX,
    )
    dispatchThrottlingRatePerTopicInMsg: int = _rate(
        "Messages per second that each topic delivers; 0 is no limit."
    )
    dispatchThrottlingRatePerTopicInByte: int = _rate(
        "Bytes per second that each topic delivers; 0 is no limit.",
        maximum=INT64_MAX,
    )
    dispatchThrottlingRatePerSubscriptionInMsg: int = _rate(
        "Messages per second that each subscription delivers; 0 is no limit."
    )
    dispatchThrottlingRatePerSubscriptionInByte: int = _rate(
        "Bytes per second that each subscription delivers; 0 is no limit.",
        maximum=INT64_MAX,
    )
    dispatchThrottlingRateRelativeToPublishRate: bool = _key(
        False,
        "Add the publish rate to the six rates above (PIP-52). Policies have a separate flag.",
        dynamic=True,
    )
    dispatchThrottlingOnBatchMessageEnabled: bool = _key(
        False, "Count a batch as one message against the limits.", dynamic=True
    )
    dispatchThrottlingOnNonBacklogConsumerEnabled: bool = _key(
        True,
        "Apply limits to all subscriptions; false spares those that are caught up.",
        dynamic=True,
    )
    managedLedgerCursorBackloggedThreshold: int = _key(
        1_000,
        "Waiting entries above which a spared subscription is no longer caught up.",
    )
    maxPublishRatePerTopicInMessages: int = _rate(
        "Messages per second that each topic or partition without a policy accepts; 0 is no limit."
    )
    maxPublishRatePerTopicInBytes: int = _rate(
        "The same in bytes per second; 0 is no limit.", maximum=INT64_MAX
    )
    brokerPublisherThrottlingMaxMessageRate: int = _rate(
        "Messages per second that the whole broker accepts; 0 is no limit."
    )
    brokerPublisherThrottlingMaxByteRate: int = _rate(
        "Bytes per second that the whole broker accepts; 0 is no limit.",
        maximum=INT64_MAX,
    )
    adaptivePublisherThrottlingEnabled: bool = _key(
        False,
        "Slow producers down, topic by topic, while memory or a topic's backlog quota runs short. "
        "Experimental; takes effect at a start.",
    )
    adaptivePublisherThrottlingObserveOnly: bool = _key(
        False,
        "Compute, log and measure every decision, and limit no producer. True releases all topics "
        "at once: the emergency switch.",
        dynamic=True,
    )
    adaptivePublisherThrottlingIntervalMs: int = _key(
        1_000,
        "Milliseconds between two cycles of the controller.",
        dynamic=True,
        minimum=10,
        maximum=600_000,
    )
    adaptivePublisherThrottlingMemoryHighWatermarkPct: float = _share(
        0.85, "Share of the memory that the broker may use at which its pressure is full (1.0)."
    )
    adaptivePublisherThrottlingMemoryLowWatermarkPct: float = _share(
        0.70,
        "Share of that memory up to which there is no pressure (0); must be below the high one.",
        excluded=(0, 1),
    )
    adaptivePublisherThrottlingBacklogHighWatermarkPct: float = _share(
        0.90,
        "Share of a topic's backlog quota at which its pressure is full (1.0). Topics without a "
        "quota have none.",
    )
    adaptivePublisherThrottlingBacklogLowWatermarkPct: float = _share(
        0.75,
        "Share of that quota up to which there is no pressure (0); must be below the high one.",
        excluded=(0, 1),
    )
    adaptivePublisherThrottlingMinRateFactor: float = _share(
        0.10,
        "The floor: the law pressure leaves a topic at least this share of its natural publish "
        "rate.",
    )
    adaptivePublisherThrottlingMaxRateChangeFactor: float = _share(
        0.25,
        "The step: a limit moves by at most this share of the natural rate in an interval; with "
        "the law drain it may fall faster.",
    )
    adaptivePublisherThrottlingPerTopicMetricsEnabled: bool = _key(
        False,
        "Add six series for each topic to /metrics; check the number of topics first.",
        dynamic=True,
    )
    adaptivePublisherThrottlingLaw: str = _key(
        "pressure",
        "Law of a topic's limit: by the pressures, or by the drain rate of its backlog.",
        dynamic=True,
        choices=("pressure", "drain"),
    )
    adaptivePublisherThrottlingDrainSetPointPct: float = _share(
        0.70,
        "Share of a topic's backlog quota at which the law drain keeps the backlog.",
        excluded=(0, 1),
    )
    adaptivePublisherThrottlingDrainHorizonMs: int = _key(
        10_000,
        "Milliseconds in which the law drain brings the backlog to that share.",
        dynamic=True,
        minimum=100,
        maximum=600_000,
    )
    headgateMemoryLimitMB: int = _key(
        0,
        "Megabytes of memory that the memory watermarks refer to; 0 is the limit of the control "
        "group, or else the machine's memory.",
    )
    exposeTopicLevelMetricsInPrometheus: bool = _key(
        True,
        "Series of each topic and subscription on /metrics; false leaves sums for each namespace.",
        dynamic=True,
    )
    exposeSubscriptionBacklogAgeInPrometheus: bool = _key(
        False,
        "The age of each durable subscription's oldest unacknowledged message on /metrics.",
        dynamic=True,
    )
    splitTopicAndPartitionLabelInPrometheus: bool = _key(
        False,
        "On /metrics a partition's series have the partitioned topic as topic and the number as "
        "partition, -1 for a topic without partitions.",
    )
    headgateTelemetryEnabled: bool = _key(True, "Publish the telemetry records.")
    headgateTelemetryTopic: str = _key(
        "persistent://headgate/telemetry/samples",
        "Topic of the telemetry records. Only the broker may produce to it, and it is exempt from "
        "limits.",
    )
    headgateTelemetryIntervalMs: int = _key(
        10_000,
        "Milliseconds between telemetry records; divides 60,000.",
        minimum=1_000,
        maximum=60_000,
    )
    headgateTelemetryNames: str = _key(
        "plain",
        "Names of tenants, namespaces, topics and subscriptions in the records: plain, or a keyed "
        "hash of each.",
        choices=("plain", "hash"),
    )
    headgateTelemetryNamesKeyFile: str = _key(
        "",
        "File with the key of hashed names, at least 16 bytes; empty for a key that the broker "
        "makes once in the data directory.",
    )
    headgateTelemetryRetentionMinutes: int = _key(
        4_320, "Minutes that telemetry is kept.", minimum=1
    )
    headgateTelemetryRetentionSizeInMB: int = _key(
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


SETTINGS: dict[str, SettingInfo] = {
    f.name: SettingInfo(name=f.name, default=f.default, **f.metadata)  # type: ignore[arg-type]
    for f in fields(Settings)
}
"""Every setting by its key, in the order of the table above."""
