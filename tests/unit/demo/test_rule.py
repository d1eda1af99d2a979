"""PIP-406's rule from two scrapes."""

from __future__ import annotations

import re

import pytest

from headgate.demo.rule import PROMQL, Sample, parse_scrape, rule_answer, rule_is_right
from headgate.demo.scenes import Subject

_TOPIC = "persistent://public/default/clicks"
_LABELS = f'cluster="demo",namespace="public/default",topic="{_TOPIC}",subscription="search"'
_MESSAGES = "pulsar_subscription_dispatch_throttled_msg_events"
_BYTES = "pulsar_subscription_dispatch_throttled_bytes_events"
_SUBJECT = Subject("demo", _TOPIC, "search")


def _page(backlog: int, **events: int) -> str:
    lines = [
        "# TYPE pulsar_subscription_back_log gauge",
        f"pulsar_subscription_back_log{{{_LABELS}}} {backlog}",
        f"pulsar_subscription_unacked_messages{{{_LABELS}}} 7",
        'pulsar_topics_count{cluster="demo"} 5',
        "pulsar_version_info 1",
    ]
    lines += [f'{_MESSAGES}{{{_LABELS},reason="{r}"}} {count}.0' for r, count in events.items()]
    lines += [f'{_BYTES}{{{_LABELS},reason="{r}"}} 1' for r in events]
    return "\n".join(lines) + "\n"


def _sample(backlog: int, **events: int) -> Sample:
    return parse_scrape(_page(backlog, **events))[_SUBJECT]


def test_a_scrape_gives_backlog_and_events_by_reason() -> None:
    page = _page(300, topic=4, broker=0)
    assert list(parse_scrape(page)) == [_SUBJECT]
    sample = _sample(300, topic=4, broker=0)
    assert sample.backlog == 300
    assert dict(sample.events) == {"topic": 5, "broker": 1}


def test_a_page_without_the_series_gives_nothing() -> None:
    assert parse_scrape("# HELP x y\npulsar_version_info 1\n") == {}


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (_sample(0), _sample(100), "no backlog"),
        (_sample(0), _sample(101), "the consumer"),
        (_sample(0, topic=5), _sample(900, topic=5), "the consumer"),
        (_sample(0, topic=5), _sample(900, topic=6), "the topic limit"),
        (_sample(0, topic=5, broker=0), _sample(900, topic=9, broker=60), "the broker limit"),
        (None, _sample(900, subscription=1), "the subscription limit"),
        (_sample(0), None, "no backlog"),
    ],
)
def test_the_rule(before: Sample | None, after: Sample | None, says: str) -> None:
    assert rule_answer(before, after) == says


def test_the_rule_may_be_undecided() -> None:
    assert rule_is_right("the topic limit", "THROTTLED_TOPIC")
    assert rule_is_right("no backlog", "NONE")
    assert not rule_is_right("the subscription limit", "CONSUMER")
    assert not rule_is_right("the consumer", "NO_CONSUMER")


def test_the_query_reads_the_same_series_in_balanced_brackets() -> None:
    for series in ("pulsar_subscription_back_log > 100", f"{_MESSAGES}[1m]", f"{_BYTES}[1m]"):
        assert series in PROMQL
    assert PROMQL.count("(") == PROMQL.count(")")
    matched = re.findall(r"(?:on|by) \((.*?)\)", PROMQL)
    assert matched == ["cluster, namespace, topic, subscription"] * 2
