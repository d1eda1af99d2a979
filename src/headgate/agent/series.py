"""The series of the agent's ``GET /metrics``: what they are named and mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class AgentSeries:
    """One name on the page."""

    name: str
    type: str
    """``gauge`` or ``counter``, as its TYPE line says."""
    labels: tuple[str, ...]
    unit: str
    meaning: str


_CLUSTER: Final = ("cluster",)
_TOPIC: Final = ("cluster", "namespace", "topic")


def _own(name: str, unit: str, meaning: str, *labels: str, kind: str = "counter") -> AgentSeries:
    return AgentSeries(f"headgate_agent_{name}", kind, (*_CLUSTER, *labels), unit, meaning)


STATE_SECONDS: Final = AgentSeries(
    "headgate_subscription_state_seconds_total",
    "counter",
    (*_TOPIC, "subscription", "state", "dimension", "consumer"),
    "s",
    "Inferred time of a subscription in each state since the agent first saw it, as the broker's"
    " series of this name. Only of subscriptions that were ever in another state than caught_up,"
    " not_due or transition.",
)
SECONDS_TO_BREACH: Final = AgentSeries(
    "headgate_backlog_quota_seconds_to_breach",
    "gauge",
    (*_TOPIC, "quota_type"),
    "s",
    "Time until the quota is reached at the smoothed present rate of growth; 0 while it is reached,"
    " no sample if it will not be within a day.",
)
QUOTA_SUBSCRIPTION: Final = AgentSeries(
    "headgate_agent_quota_subscription",
    "gauge",
    (*_TOPIC, "quota_type", "subscription"),
    "1",
    "Always 1: the subscription with the largest backlog, or with the oldest message, of a quota"
    " with a sample of headgate_backlog_quota_seconds_to_breach.",
)
QUOTA_PERIOD: Final = AgentSeries(
    "headgate_agent_quota_look_period_seconds",
    "gauge",
    (*_TOPIC, "quota_type"),
    "s",
    "Time between the two looks that the rate of growth of a quota with a sample of"
    " headgate_backlog_quota_seconds_to_breach is from: about 60 for topics that surveys alone"
    " show.",
)
LAST_LOOK_AGE: Final = _own(
    "last_look_age_seconds", "s", "Time since the agent last got a look at any topic; since its"
    " start before the first.", kind="gauge",
)  # fmt: skip
LOOKS: Final = _own("looks_total", "looks", "Looks at topics and partitions, those of surveys"
                    " included.")  # fmt: skip
LOOK_ERRORS: Final = _own("look_errors_total", "requests", "Looks that failed, by kind of look.",
                          "kind")  # fmt: skip
REQUESTS: Final = _own("requests_total", "requests", "Requests to the brokers of the cluster.")
BUDGET: Final = _own(
    "request_budget_per_second", "requests/s", "Requests that the agent allows itself now: half as"
    " many after slow answers.", kind="gauge",
)  # fmt: skip
TOPICS: Final = _own("topics", "topics", "Topics and partitions that it knows.", kind="gauge")
LEFT_OUT: Final = _own(
    "left_out_subscriptions", "subscriptions", "Subscriptions without series on this page, because"
    " there are too many.", kind="gauge",
)  # fmt: skip
FAILURES: Final = _own("failures_total", "failures", "Errors in the agent itself, after which it"
                       " went on; its log has them.")  # fmt: skip
RECORDS: Final = _own("records_total", "messages", "Telemetry messages that were stored, by where"
                      " to: files or topic.", "sink")  # fmt: skip
RECORD_BYTES: Final = _own("record_bytes_total", "bytes", "Bytes of these messages.", "sink")
RECORD_FAILURES: Final = _own(
    "record_failures_total", "failures", "Attempts to store telemetry that failed.", "sink"
)
RECORDS_DROPPED: Final = _own(
    "records_dropped_total", "messages", "Telemetry messages that were given up, because they could"
    " not be stored in time.", "sink",
)  # fmt: skip
RECORD_FILES: Final = _own("record_files_total", "files", "Files of telemetry that were written.")
FILES_REMOVED: Final = _own(
    "record_files_removed_total", "files", "Files of telemetry that were removed because they were"
    " old or too many, read or not.",
)  # fmt: skip
FOLDER_BYTES: Final = _own("record_folder_bytes", "bytes", "What the files take now.", kind="gauge")
CERTIFICATE_EXPIRES: Final = AgentSeries(
    "headgate_agent_tls_certificate_expires_timestamp_seconds", "gauge", (), "s",
    "End of the certificate of the agent's own port, in seconds since 1970. Absent without TLS.",
)  # fmt: skip
RELOAD_FAILURES: Final = AgentSeries(
    "headgate_agent_tls_reload_failures_total", "counter", (), "looks",
    "Looks at changed files of TLS that cannot be used, while those of before stay in force. Absent"
    " without TLS.",
)  # fmt: skip

AGENT_SERIES: Final = (
    LAST_LOOK_AGE, LOOKS, LOOK_ERRORS, REQUESTS, BUDGET, TOPICS, LEFT_OUT, FAILURES, RECORDS,
    RECORD_BYTES, RECORD_FAILURES, RECORDS_DROPPED, RECORD_FILES, FILES_REMOVED, FOLDER_BYTES,
    SECONDS_TO_BREACH, QUOTA_SUBSCRIPTION, QUOTA_PERIOD, STATE_SECONDS,
    CERTIFICATE_EXPIRES, RELOAD_FAILURES,
)  # fmt: skip
"""In the order of the page."""
