"""Parser of one ``/metrics`` text into the values of its topics and subscriptions.

Memory grows with the number of subjects, not with the text: the parser reads line by line and
ignores other series. ``prometheus_client`` parses the labels, once for all series of a subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from headgate.pipeline.scrapes.series import NAMES, SERIES, Scope

Values: TypeAlias = dict[str, float]
"""Values of one subject, by the fields of ``series``."""

VALUE_MAX: Final = 1e18
"""Largest value that is read, so that values and their sums fit a column. Brokers tell the largest
number of Java for no value."""

_PARTITION: Final = re.compile(r"(?P<topic>.+)-partition-(?P<index>0|[1-9][0-9]{0,8})")
"""As :mod:`headgate.base.names` reads it. A topic that ends otherwise is no partition: whoever may
create topics chooses its name, and a number of twenty digits would fit no column."""
_INDEX: Final = re.compile(r"-1|0|[1-9][0-9]{0,8}")


class TopicName(NamedTuple):
    """A topic as in rows: its logical name, and the index of the partition or None."""

    cluster: str
    topic: str
    partition: int | None


@dataclass(slots=True)
class Scrape:
    """Values of one scrape. ``texts`` has the stored labels, by subject and field."""

    broker: Values = field(default_factory=dict)
    topics: dict[TopicName, Values] = field(default_factory=dict)
    subscriptions: dict[tuple[TopicName, str], Values] = field(default_factory=dict)
    texts: dict[tuple[TopicName | None, str | None, str], str] = field(default_factory=dict)
    unreadable: int = 0
    """Lines of wanted series that could not be read."""
    first_unreadable: str = ""
    """The first of these lines, unchanged."""


@dataclass(frozen=True, slots=True)
class _Subject:
    scope: Scope
    labels: dict[str, str]
    topic: TopicName | None
    subscription: str | None
    values: Values


def read_scrape(lines: Iterable[str]) -> Scrape:
    """Parse a text. Malformed lines of wanted series are counted and left out.

    Values that are not finite are left out, too.
    """
    scrape = Scrape()
    known: dict[str, _Subject] = {}
    for line in lines:
        name, brace, rest = line.partition("{")
        if not brace:
            name, _, rest = line.strip().partition(" ")
        if name not in NAMES:
            continue
        labels_text, closed, value_text = rest.rpartition("}")
        try:
            if brace and not closed:
                raise ValueError("the labels do not end")
            value = float(value_text.split()[0])
            subject = known.get(labels_text)
            if subject is None:
                subject = known[labels_text] = _subject(scrape, _labels(labels_text))
            _store_value(scrape, name, subject, value)
        except (ValueError, KeyError, IndexError):
            scrape.unreadable += 1
            scrape.first_unreadable = scrape.first_unreadable or line.rstrip("\n")
    return scrape


def _labels(text: str) -> dict[str, str]:
    (family,) = text_string_to_metric_families(f"x{{{text}}} 0\n")
    (sample,) = family.samples
    labels: dict[str, str] = sample.labels
    return labels


def _subject(scrape: Scrape, labels: dict[str, str]) -> _Subject:
    """The subject of labels. Series without a topic, as of namespaces, are the broker's."""
    if "topic" not in labels or "remote_cluster" in labels:
        return _Subject(Scope.BROKER, labels, None, None, scrape.broker)
    topic = _topic_name(labels)
    if "subscription" not in labels:
        values = scrape.topics.setdefault(topic, {})
        return _Subject(Scope.TOPIC, labels, topic, None, values)
    subscription = labels["subscription"]
    values = scrape.subscriptions.setdefault((topic, subscription), {})
    is_consumer = "consumer_name" in labels or "consumer_id" in labels
    scope = Scope.CONSUMER if is_consumer else Scope.SUBSCRIPTION
    return _Subject(scope, labels, topic, subscription, values)


def _topic_name(labels: dict[str, str]) -> TopicName:
    """The name by the label ``partition`` (``splitTopicAndPartitionLabelInPrometheus``) or
    suffix."""
    topic, cluster = labels["topic"], labels.get("cluster", "")
    if "partition" in labels:
        if _INDEX.fullmatch(labels["partition"]) is None:
            raise ValueError("the label is no index of a partition")
        index = int(labels["partition"])
        return TopicName(cluster, topic, index if index >= 0 else None)
    match = _PARTITION.fullmatch(topic)
    if match is None:
        return TopicName(cluster, topic, None)
    return TopicName(cluster, match["topic"], int(match["index"]))


def _store_value(scrape: Scrape, name: str, subject: _Subject, value: float) -> None:
    wanted = SERIES.get((name, subject.scope))
    if wanted is None or not abs(value) <= VALUE_MAX:  # nor one that is no number
        return
    key = wanted.field
    if "{" in key:
        key = key.format_map(subject.labels)
    if wanted.scope is Scope.CONSUMER:
        subject.values[key] = subject.values.get(key, 0.0) + value
    else:
        subject.values[key] = value
    if wanted.text_field:
        place = (subject.topic, subject.subscription, wanted.text_field.format_map(subject.labels))
        scrape.texts[place] = subject.labels[wanted.text_label]
