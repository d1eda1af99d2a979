"""The words of an answer that was inferred."""

from __future__ import annotations

from typing import Any

from headgate.cli.explain.inferred import (
    add_not_seen,
    cluster_text,
    evidence_text,
    inferred_publishing_line,
    is_inferred,
    is_noise,
)
from headgate.cli.explain.page import Page

SEEN: dict[str, Any] = {"evidence": "inferred", "looks": 12, "lookedForS": 30.2, "notSeen": []}
SIDE = {"producers": 2, "messagesPerS": 5.5, "bytesPerS": 2_048.0}


def test_how_much_was_seen() -> None:
    assert evidence_text(SEEN) == "inferred from 12 looks in 30 s"
    assert evidence_text(SEEN | {"looks": 1}) == "inferred from 1 look"
    assert evidence_text(SEEN | {"notSeen": ["a", "b"]}).endswith("; not seen: a; b")


def test_evidence_of_a_broker_is_measured() -> None:
    assert is_inferred(SEEN)
    assert not is_inferred({})
    assert not is_inferred({"evidence": "measured"})


def test_an_agent_does_not_tell_the_release() -> None:
    assert cluster_text({"clusterVersion": "4.0.8"}) == "Apache Pulsar 4.0.8"
    assert cluster_text({}) == "Apache Pulsar"


def test_an_amount_within_the_error_of_looks_is_noise() -> None:
    window = {"appendedPerS": 100.0, "windowS": 30.0}
    assert is_noise(SEEN, window, 149)
    assert not is_noise(SEEN, window, 150)
    assert not is_noise({}, window, 1)


def test_publishing_is_told_as_far_as_it_is_known() -> None:
    line = inferred_publishing_line
    assert line({"publishing": SIDE, "storageBytes": 1_024}) == (
        "producers on 2 connections; 5.5 msg/s (2 KiB/s) published; 1 KiB stored"
    )
    unknown = dict.fromkeys(SIDE)
    assert line({"publishing": unknown, "storageBytes": None}) == (
        "What is published is not known."
    )
    assert "B/s" not in line({"publishing": SIDE | {"bytesPerS": None}, "storageBytes": None})


def test_what_was_not_seen_stands_at_the_end() -> None:
    page = Page(80, False)
    add_not_seen(page, {"notSeen": []})
    assert page.text() == ""
    add_not_seen(page, {"notSeen": ["broker-1 did not answer"]})
    assert page.text() == "\nNot seen:\n    Broker-1 did not answer.\n"
