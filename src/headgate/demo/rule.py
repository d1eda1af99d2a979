"""PIP-406's rule: with a high backlog and no throttled events, blame the consumer.

Its two metrics count how often each level's limit delayed a delivery. Two scrapes of /metrics are
enough to apply the rule; :data:`PROMQL` is the same for a Prometheus.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from headgate.demo.scenes import Subject

HIGH_BACKLOG: Final = 100
"""Entries; a demo's backlogs are small."""

_BACKLOG: Final = "pulsar_subscription_back_log"
_EVENTS: Final = (
    "pulsar_subscription_dispatch_throttled_msg_events",
    "pulsar_subscription_dispatch_throttled_bytes_events",
)

PROMQL: Final = f"""\
{_BACKLOG} > {HIGH_BACKLOG}
unless on (cluster, namespace, topic, subscription) (
  sum by (cluster, namespace, topic, subscription) (
      increase({_EVENTS[0]}[1m])
    + increase({_EVENTS[1]}[1m])
  ) > 0
)"""
"""Lists the subscriptions whose backlog the rule blames on the consumer."""

Scrape = Mapping[Subject, "Sample"]

_LINE: Final = re.compile(r"(\w+)\{(.*)\} (\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Sample:
    """The series of one subscription in one scrape."""

    def __init__(self) -> None:
        self.backlog = 0
        self.events: dict[str, int] = defaultdict(int)
        """Throttled events by reason, both metrics summed."""


def parse_scrape(page: str) -> dict[Subject, Sample]:
    """The rule's three series of a /metrics page."""
    found: dict[Subject, Sample] = defaultdict(Sample)
    for line in page.splitlines():
        match = _LINE.match(line)
        if match is None or match[1] not in (_BACKLOG, *_EVENTS):
            continue
        labels = dict(_LABEL.findall(match[2]))
        subject = Subject(labels["cluster"], labels["topic"], labels["subscription"])
        value = int(float(match[3]))
        if match[1] == _BACKLOG:
            found[subject].backlog = value
        else:
            found[subject].events[labels["reason"]] += value
    return dict(found)


def rule_answer(before: Sample | None, after: Sample | None) -> str:
    """``no backlog``, ``the consumer``, or which limits.

    The rule cannot tell a missing consumer from a slow one, nor a busy limiter from a cause.
    """
    if after is None or after.backlog <= HIGH_BACKLOG:
        return "no backlog"
    start = {} if before is None else before.events
    grown = {
        reason: count - start.get(reason, 0)
        for reason, count in after.events.items()
        if count > start.get(reason, 0)
    }
    if not grown:
        return "the consumer"
    return f"the {max(grown, key=lambda reason: grown[reason])} limit"


def rule_is_right(answer: str, verdict: str) -> bool:
    """Whether the rule's answer is the cause that a situation was built with."""
    expected = {
        "NONE": "no backlog",
        "CONSUMER": "the consumer",
        "THROTTLED_SUBSCRIPTION": "the subscription limit",
        "THROTTLED_TOPIC": "the topic limit",
        "THROTTLED_BROKER": "the broker limit",
    }
    return expected.get(verdict) == answer
