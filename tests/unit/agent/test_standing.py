"""Whether a cluster answers, since when, and how much it is asked."""

from __future__ import annotations

from headgate.agent.standing import QUIET_NS, Contact, RequestRate
from tests.unit.agent.looks import S


def test_a_cluster_answers_since_its_first_answer() -> None:
    contact = Contact()
    assert contact.is_reachable is None
    contact.note_answer(5 * S)
    contact.note_answer(9 * S)
    assert (contact.is_reachable, contact.since_ns, contact.reason) == (True, 5 * S, "")


def test_a_cluster_that_never_answered_is_away_since_the_first_failure() -> None:
    contact = Contact()
    contact.note_failure(1 * S, "refused")
    contact.note_failure(7 * S, "timed out")
    assert (contact.is_reachable, contact.since_ns, contact.reason) == (False, 1 * S, "timed out")
    contact.note_answer(8 * S)
    assert (contact.is_reachable, contact.since_ns, contact.reason) == (True, 8 * S, "")


def test_a_failure_beside_answers_of_other_brokers_is_no_outage() -> None:
    contact = Contact()
    contact.note_answer(10 * S)
    contact.note_failure(10 * S + QUIET_NS - 1, "the balancer is away")
    assert (contact.is_reachable, contact.since_ns) == (True, 10 * S)
    contact.note_failure(10 * S + QUIET_NS, "the balancer is away")
    assert (contact.is_reachable, contact.since_ns) == (False, 10 * S + QUIET_NS)


def test_the_rate_is_that_of_the_last_minute() -> None:
    rate = RequestRate()
    rate.note(0, 0)
    assert rate.per_s is None
    rate.note(1 * S, 1_000)
    assert rate.per_s is None  # too early for a step
    rate.note(5 * S, 10)
    assert rate.per_s == 2
    for second in range(10, 101, 5):
        rate.note(second * S, 10 + 4 * (second - 5))
    assert rate.per_s == 4
