"""Everything that the agent asks of a cluster, as paths of Pulsar's admin API. All are GET.

The guide lists them with their costs (``docs/guide/ask-your-own-cluster.md``).
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from headgate.agent.look_plan import LookKind
from headgate.base.names import TopicName, parse_topic

VERSION: Final = "/admin/v2/brokers/version"
BROKERS: Final = "/admin/v2/brokers"
SURVEY: Final = "/admin/v2/broker-stats/topics"
SETTINGS: Final = "/admin/v2/brokers/configuration/runtime"

STATS_QUERY: Final = "getPreciseBacklog=false&subscriptionBacklogSize=true"
SUSPECT_QUERY: Final = (
    "getPreciseBacklog=false&subscriptionBacklogSize=false&excludePublishers=true"
)

RATES: Final = {
    "dispatch_rate": "dispatchRate",
    "subscription_dispatch_rate": "subscriptionDispatchRate",
    "publish_rate": "publishRate",
}
"""Policies of a topic, by their fields in :class:`headgate.agent.limits_reading.LimitAnswers`.

Without ``applied=true``: what is applied does not say where it is set."""


def topic_path(topic: TopicName) -> str:
    """A topic's part of a path: ``persistent/acme/shop/orders``."""
    return f"{topic.domain}/{topic.namespace}/{quote(topic.local, safe='')}"


def path_of(kind: LookKind, subject: str, *, is_close: bool = True) -> str:
    """What one look asks. Of the limits, which take several requests, see :func:`limits_paths`.

    ``is_close`` asks for the publishers of a topic and the bytes of its backlogs too.
    """
    if kind is LookKind.BROKERS:
        return BROKERS
    if kind is LookKind.SURVEY:
        return SURVEY
    if kind is LookKind.TOPICS:
        return f"/admin/v2/persistent/{quote(subject, safe='/')}"
    topic = f"/admin/v2/{topic_path(parse_topic(subject))}"
    if kind is LookKind.PARTITIONS:
        return f"{topic}/partitions"
    if kind is LookKind.PROOF:
        return f"{topic}/internalStats"
    return f"{topic}/stats?{STATS_QUERY if is_close else SUSPECT_QUERY}"


def limits_paths(topic: str) -> dict[str, str]:
    """The policies of a topic itself, by the fields of ``LimitAnswers``."""
    path = _policies_path(topic)
    return {field: f"{path}/{rate}" for field, rate in RATES.items()}


def subscription_limit_path(topic: str, subscription: str) -> str:
    """The policy of one subscription."""
    return f"{_policies_path(topic)}/{quote(subscription, safe='')}/dispatchRate"


def namespace_path(topic: str) -> str:
    """All policies of a topic's namespace."""
    return f"/admin/v2/namespaces/{parse_topic(topic).namespace}"


def quotas_path(namespace: str) -> str:
    """The backlog quotas that a namespace sets."""
    return f"/admin/v2/namespaces/{quote(namespace, safe='/')}/backlogQuotaMap"


def _policies_path(topic: str) -> str:
    # A partition has the policies of its topic.
    return f"/admin/v2/{topic_path(parse_topic(topic).base)}"
