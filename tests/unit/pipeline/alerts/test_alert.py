"""Labels are the identity of an alert."""

from __future__ import annotations

from headgate.pipeline.alerts.alert import (
    CRITICAL,
    WARNING,
    Alert,
    fingerprint,
    identity,
    named,
    namespace_of,
)


def test_a_fingerprint_is_that_of_alertmanager() -> None:
    """The figure of an Alertmanager 0.25 for an alert with these labels."""
    labels = {
        "alertname": "HeadgateQuotaReached", "cluster": "c1", "env": "prod",
        "namespace": "public/default", "quota": "size", "severity": "critical",
        "topic": "persistent://public/default/payments",
    }  # fmt: skip
    assert fingerprint(labels) == "4459d0508191067b"


def test_the_order_of_labels_is_no_part_of_the_identity() -> None:
    assert fingerprint({"a": "1", "b": "2"}) == fingerprint({"b": "2", "a": "1"})
    assert fingerprint({"a": "12"}) != fingerprint({"a1": "2"})
    assert identity({"a": "1", "b": "2"}) == identity({"b": "2", "a": "1"})
    assert identity({"a": "12"}) != identity({"a1": "2"})


def test_labels_without_a_value_are_left_out() -> None:
    assert named("A", WARNING, cluster=None, topic="t", quota="") == {
        "alertname": "A", "severity": "warning", "topic": "t",
    }  # fmt: skip


def test_rank_and_namespace() -> None:
    assert Alert(named("A", CRITICAL), {}, None, 0).rank == 0
    assert Alert(named("A", WARNING), {}, None, 0).rank == 1
    assert namespace_of("persistent://a/b/c") == "a/b"
    assert namespace_of("") == ""
