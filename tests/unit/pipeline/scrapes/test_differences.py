"""Differences of two scrapes: amounts, causes, seconds and levels."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.base.units import NS_PER_S
from headgate.pipeline.scrapes.differences import differences
from headgate.pipeline.scrapes.pairs import Difference, ScrapePair
from headgate.pipeline.scrapes.reading import Scrape, TopicName, Values
from headgate.record.fields import STATE_FIELD_NAMES, Kind

NAME = TopicName("c", "persistent://t/n/a", None)
TEN_S = 10 * NS_PER_S


def pair(
    topics: tuple[Values, Values], subscriptions: tuple[Values, Values], **broker: Any
) -> ScrapePair:
    """Two scrapes of one topic, ten seconds apart; ``started`` is when the process began."""
    started = broker.get("started", (5.0, 5.0))
    before, after = (
        Scrape({"started_s": s}, {NAME: t}, {(NAME, "s"): values})
        for s, t, values in zip(started, topics, subscriptions, strict=True)
    )
    return ScrapePair("b", before, after, 0, TEN_S)


def only(pair_: ScrapePair, kind: Kind) -> Difference:
    (found,) = dict(differences(pair_))[kind]
    return found


def subscription(before: Values, after: Values, published: float = 0, **more: Any) -> Difference:
    topics: tuple[Values, Values] = ({"msgs_in": 0.0}, {"msgs_in": published, **more})
    return only(pair(topics, (before, after)), Kind.SUBSCRIPTION)


ACKED: Values = {"mark_delete_ms": 7.0, "acked_ms": 7.0}


def test_amounts_are_growths_and_levels_those_of_the_second_scrape() -> None:
    found = only(
        pair(
            (
                {"msgs_in": 100.0, "bytes_in": 9.0, "backlog_bytes": 5.0},
                {
                    "msgs_in": 150.0,
                    "backlog_bytes": 8.0,
                    "producers": 2.0,
                    "age_s": -1.0,
                    "quota_size": -1.0,
                    "quota_time_s": 60.0,
                },
            ),
            ({}, {}),
        ),
        Kind.TOPIC,
    )
    assert found.same == {
        "cluster": "c",
        "topic": NAME.topic,
        "partition": None,
        "evidence": "inferred",
    }
    assert found.first == {"backlog_bytes": 5, "msgs_in": 0}
    told = {name: value for name, value in found.second.items() if value is not None}
    assert told == {
        "msgs_in": 50,
        "backlog_bytes": 8,
        "producers": 2,
        "quota_time_limit_ns": 60 * NS_PER_S,
    }


def test_a_topic_that_is_not_persistent_has_no_quota() -> None:
    name = NAME._replace(topic="non-persistent://t/n/a")
    scrape = Scrape(topics={name: {"quota_size": 0.0, "quota_time_s": 0.0}})
    found = only(ScrapePair("b", scrape, scrape, 0, TEN_S), Kind.TOPIC)
    assert "quota_size_limit_bytes" not in found.second


def test_a_fallen_counter_has_both_readings() -> None:
    found = subscription({"backlog": 0.0, "msgs_out": 90.0}, {"backlog": 0.0, "msgs_out": 4.0})
    assert (found.first["msgs_out"], found.second["msgs_out"]) == (90, 4)


def test_a_new_process_counts_from_zero_however_much_it_counted() -> None:
    found = only(
        pair(({"msgs_in": 100.0}, {"msgs_in": 150.0}), ({}, {}), started=(5.0, 6.0)), Kind.TOPIC
    )
    assert (found.first["msgs_in"], found.second["msgs_in"]) == (0, 150)


def test_subjects_of_one_scrape_only_have_no_row() -> None:
    empty = Scrape()
    full = Scrape(topics={NAME: {}}, subscriptions={(NAME, "s"): {"backlog": 1.0}})
    silent = Scrape(topics={NAME: {}}, subscriptions={(NAME, "s"): {}})
    for before, after in ((empty, full), (full, empty)):
        found = dict(differences(ScrapePair("b", before, after, 0, 1)))
        assert found == {Kind.TOPIC: [], Kind.SUBSCRIPTION: []}
    assert dict(differences(ScrapePair("b", silent, full, 0, 1)))[Kind.SUBSCRIPTION] == []


def test_amounts_are_in_messages_and_backlogs_in_entries() -> None:
    rates = {"rate_in": 50.0, "entry_rate_in": 5.0}
    found = subscription(
        {"backlog": 10.0, "consumers": 1.0},
        {"backlog": 20.0, "consumers": 1.0, **ACKED},
        500,
        **rates,
    )
    row = found.second
    assert (row["appended"], row["acked"], row["backlog_messages"]) == (500, 400, 20)
    assert found.first["backlog_messages"] == 10
    # Producers that have left have no rate; their messages were counted.
    alone = {"rate_in": 0.0, "entry_rate_in": 5.0}
    row = subscription({"backlog": 10.0}, {"backlog": 20.0, **ACKED}, 500, **alone).second
    assert row["acked"] == 400


def test_nothing_is_acknowledged_where_no_acknowledgement_was_seen() -> None:
    told: Values = {"mark_delete_ms": 7.0, "acked_ms": 7.0}
    row = subscription({"backlog": 0.0, **told}, {"backlog": 25.0, **told}, 500).second
    assert (row["appended"], row["acked"], row["skipped"]) == (500, 0, 0)
    row = subscription({"backlog": 25.0, **told}, {"backlog": 5.0, **told}).second
    assert (row["acked"], row["skipped"]) == (0, 20)
    row = subscription({"backlog": 25.0}, {"backlog": 5.0}).second
    assert (row["acked"], row["skipped"]) == (20, 0)


def test_expired_and_evicted_messages_were_not_acknowledged() -> None:
    row = subscription(
        {"backlog": 100.0, "expired": 5.0}, {"backlog": 40.0, "expired": 65.0, **ACKED}
    ).second
    assert (row["expired"], row["acked"]) == (60, 0)
    topics: tuple[Values, Values] = ({"eviction_size_acts": 1.0}, {"eviction_size_acts": 2.0})
    rates: tuple[Values, Values] = (
        {"backlog": 100.0, "ack_rate": 1.0},
        {"backlog": 20.0, "ack_rate": 3.0, **ACKED},
    )
    row = only(pair(topics, rates), Kind.SUBSCRIPTION).second
    assert (row["acked"], row["evicted"]) == (20, 60)
    assert (row["evicted_by"], row["evicted_by_limit"]) == ("size", None)
    topics[1].update(eviction_time_acts=5.0, quota_time_s=30.0, quota_size=1_000.0)
    topics[0].update(eviction_time_acts=1.0)
    row = only(pair(topics, rates), Kind.SUBSCRIPTION).second
    assert (row["evicted_by"], row["evicted_by_limit"]) == ("time", 30_000_000_000)
    calm = subscription({"backlog": 100.0}, {"backlog": 20.0, **ACKED}).second
    assert "evicted_by" not in calm


@pytest.mark.parametrize("values", [{"blocked": 1.0}, {"blocked_consumers": 2.0}])
def test_blocked_consumers_are_recognized(values: Values) -> None:
    level: Values = {"backlog": 9.0, "consumers": 2.0, **values}
    row = subscription(level, level).second
    assert row["state_unacked_limit_ns"] == TEN_S


def test_ages_come_from_the_broker_if_it_has_them() -> None:
    level: Values = {"backlog": 9.0, "age_s": 3.5}
    assert subscription(level, level).second["oldest_age_ns"] == 3_500_000_000
    assert subscription({"backlog": 9.0}, {"backlog": 9.0}).second["oldest_age_ns"] == TEN_S
    assert subscription(level, {"backlog": 0.0, "age_s": 3.5}).second["oldest_age_ns"] is None


def test_headgates_own_account_is_taken_as_it_is() -> None:
    after: Values = {"backlog": 9.0, "state:no_permits::": 7.5, "state:caught_up::": 2.6}
    row = subscription({"backlog": 9.0, "state:caught_up::": 0.1}, after)
    assert row.same["evidence"] == "measured"
    cells = {name: row.second[name] for name in STATE_FIELD_NAMES if row.second[name]}
    assert cells == {"state_no_permits_ns": 7_500_000_000, "state_caught_up_ns": 2_500_000_000}
    parked: Values = {"parked_topic_rate_s": 1.0}
    topic = only(pair((parked, {"parked_topic_rate_s": 3.5}), ({}, {})), Kind.TOPIC)
    assert topic.same["evidence"] == "measured"
    assert topic.second["parked_topic_rate_ns"] == 2_500_000_000


def test_limits_have_their_source() -> None:
    scrape = Scrape(
        {"limit_broker_bytes": 0.25},
        {NAME: {"limit_topic_messages": 50.0}},
        {(NAME, "s"): {"backlog": 1.0}},
        {(NAME, None, "limit_topic_source"): "topic policy"},
    )
    row = only(ScrapePair("b", scrape, scrape, 0, TEN_S), Kind.SUBSCRIPTION).second
    assert {name: value for name, value in row.items() if name.startswith("limit_")} == {
        "limit_topic_messages": 50,
        "limit_topic_period_ns": NS_PER_S,
        "limit_topic_source": "topic policy",
        "limit_broker_bytes": 250,
        "limit_broker_period_ns": 1_000 * NS_PER_S,
        "limit_broker_source": None,
    }
