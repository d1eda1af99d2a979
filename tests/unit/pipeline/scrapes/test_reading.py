"""The parser of ``/metrics``, with a real text and malformed lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.pipeline.scrapes.reading import TopicName, read_scrape

REAL = Path(__file__).with_name("pulsar-4.0.8.prom")
NAME = TopicName("c", "persistent://t/n/a", None)
TOPIC = 'cluster="c",namespace="t/n",topic="persistent://t/n/a"'
SUBSCRIPTION = f'{TOPIC},subscription="s"'


def test_a_real_text_is_read_whole() -> None:
    with REAL.open(encoding="utf-8") as lines:
        scrape = read_scrape(lines)
    assert scrape.unreadable == 0
    assert {(name.topic, name.partition) for name in scrape.topics} == {
        ("persistent://public/tdf20866e/t", None),
        *(("persistent://acme/b2/pt2", index) for index in range(3)),
    }
    name = TopicName("standalone", "persistent://public/tdf20866e/t", None)
    assert scrape.topics[name]["msgs_in"] == 7_999
    values = scrape.subscriptions[name, "s0"]
    assert (values["backlog"], values["msgs_out"]) == (359, 7_999)
    assert values["throttled_subscription_messages_events"] == 327
    assert values["throttled_topic_bytes_events"] == 0
    assert values["mark_delete_ms"] == 1_795_218_592_408


def test_consumers_are_added_up_and_their_counters_are_not_the_subscriptions() -> None:
    one, other = (f'{SUBSCRIPTION},consumer_name="{n}",consumer_id="0"' for n in "ab")
    scrape = read_scrape(
        [
            f"pulsar_out_messages_total{{{SUBSCRIPTION}}} 7",
            f"pulsar_out_messages_total{{{one}}} 3",
            f"pulsar_consumer_available_permits{{{one}}} 5",
            f"pulsar_consumer_available_permits{{{other}}} -2",
        ]
    )
    assert scrape.subscriptions[NAME, "s"] == {"msgs_out": 7.0, "permits": 3.0}


ODD_NAMES = [
    f"persistent://t/n/a-partition-{index}" for index in ("9" * 20, "007", "1\u0662", "-1")
]


@pytest.mark.parametrize(
    ("labels", "topic", "partition"),
    [
        ('topic="persistent://t/n/a-partition-7"', "persistent://t/n/a", 7),
        ('topic="persistent://t/n/a",partition="7"', "persistent://t/n/a", 7),
        ('topic="persistent://t/n/a",partition="-1"', "persistent://t/n/a", None),
        ('topic="persistent://t/n/a-partition-x"', "persistent://t/n/a-partition-x", None),
        # Pulsar takes these for ordinary topics, which whoever may produce can create.
        *((f'topic="{name}"', name, None) for name in ODD_NAMES),
        ('topic="persistent://t/n/}\\"{"', 'persistent://t/n/}"{', None),
    ],
)
def test_partitions_are_recognized_by_label_or_suffix(
    labels: str, topic: str, partition: int | None
) -> None:
    scrape = read_scrape([f'pulsar_in_messages_total{{cluster="c",{labels}}} 1'])
    assert list(scrape.topics) == [TopicName("c", topic, partition)]


def test_headgates_own_account_and_limits_are_kept() -> None:
    scrape = read_scrape(
        [
            f"headgate_subscription_state_seconds_total{{{SUBSCRIPTION},"
            'state="throttled_topic",dimension="bytes",consumer="busy"} 2.5',
            f"headgate_subscription_state_seconds_total{{{SUBSCRIPTION},"
            'state="caught_up",dimension="",consumer=""} 1.5',
            f'headgate_effective_limit{{{TOPIC},limiter="topic",dimension="messages",'
            'source="topic policy"} 50',
        ]
    )
    assert scrape.subscriptions[NAME, "s"] == {
        "state:throttled_topic:bytes:busy": 2.5,
        "state:caught_up::": 1.5,
    }
    assert scrape.topics[NAME] == {"limit_topic_messages": 50.0}
    assert scrape.texts == {(NAME, None, "limit_topic_source"): "topic policy"}


def test_other_series_are_ignored() -> None:
    scrape = read_scrape(
        [
            "",
            "# TYPE pulsar_in_messages_total gauge",
            "# HELP",
            "jvm_threads 12",
            f"pulsar_entry_size_le_128{{{TOPIC}}} what ever",
            'pulsar_rate_in{cluster="c",namespace="t/n"} 5',
            "process_start_time_seconds 1.7954E9",
            f"pulsar_rate_in{{{TOPIC}}} NaN",
            f"pulsar_storage_write_rate{{{TOPIC}}} +Inf",
        ]
    )
    assert scrape.broker == {"started_s": 1.7954e9}
    assert (scrape.topics, scrape.unreadable) == ({NAME: {}}, 0)


@pytest.mark.parametrize(
    "line",
    [
        "pulsar_rate_in{",
        "pulsar_rate_in{ 2",
        f"pulsar_rate_in{{{TOPIC}}}",
        f"pulsar_rate_in{{{TOPIC}}} 1,5",
        f"pulsar_rate_in{{{TOPIC}",
        'pulsar_rate_in{topic="a} 1',
        "pulsar_rate_in{topic=a} 1",
        'pulsar_rate_in{topic="a",partition="x"} 1',
        'pulsar_rate_in{topic="a",partition="99999999999999999999"} 1',
        f"pulsar_subscription_dispatch_throttled_msg_events{{{SUBSCRIPTION}}} 1",
    ],
)
def test_a_malformed_line_is_counted_and_skipped(line: str) -> None:
    scrape = read_scrape([f"{line}\n", f"pulsar_in_messages_total{{{TOPIC}}} 1\n"])
    assert (scrape.unreadable, scrape.first_unreadable) == (1, line)
    assert scrape.topics[NAME] == {"msgs_in": 1.0}


def test_timestamps_after_the_value_are_allowed() -> None:
    scrape = read_scrape([f"pulsar_rate_in{{{TOPIC}}}\t2.5 1395066363000"])
    assert scrape.topics[NAME] == {"rate_in": 2.5}
