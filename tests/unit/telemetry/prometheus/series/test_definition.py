"""A series' name, type and labels follow from whose it is and what it is about."""

from __future__ import annotations

from headgate.telemetry.prometheus.series.definition import (
    broker_counter,
    broker_gauge,
    own_broker_series,
    own_topic_series,
    subscription_gauge,
    topic_gauge,
)


def test_pulsars_series_are_gauges_with_the_labels_of_their_subject() -> None:
    assert broker_gauge("x", "1", "X.", "broker").labels == ("cluster", "broker")
    topic = topic_gauge("rate_in", "messages/s", "Messages published.")
    assert (topic.name, topic.type) == ("pulsar_rate_in", "gauge")
    assert topic.labels == ("cluster", "namespace", "topic")
    own = subscription_gauge("x", "1", "X.", "reason")
    assert own.labels == ("cluster", "namespace", "topic", "subscription", "reason")


def test_own_series_have_headgates_prefix_and_any_type() -> None:
    series = own_broker_series("commits_total", "counter", "commits", "Commits.")
    assert (series.name, series.type, series.labels) == (
        "headgate_commits_total", "counter", ("cluster",),
    )  # fmt: skip
    parked = own_topic_series("publish_parked_bytes", "gauge", "bytes", "Bytes.", "cause")
    assert parked.labels == ("cluster", "namespace", "topic", "cause")


def test_a_counter_of_pulsars_has_its_type_line_without_total() -> None:
    series = broker_counter("broker_lookup_answers", "lookups", "Lookups.")
    assert series.name == "pulsar_broker_lookup_answers_total"
    assert series.family == "pulsar_broker_lookup_answers"
    assert own_broker_series("x_total", "counter", "1", "X.").family == "headgate_x_total"
