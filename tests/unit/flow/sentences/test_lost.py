"""What took messages is named if it is known."""

from __future__ import annotations

from headgate.flow.sentences.lost import evicted_text, expired_text, unacknowledged_text


def test_the_cause_stands_before_the_amount() -> None:
    quota, ttl = "the size quota of 1 MiB (topic policy)", "the message TTL of 60 s (topic policy)"
    assert evicted_text(1_200, quota) == f"{quota} evicted 1,200 messages"
    assert expired_text(1, ttl) == f"{ttl} expired 1 message"


def test_an_unknown_cause() -> None:
    assert evicted_text(1, "") == "a backlog quota evicted 1 message"
    assert expired_text(1_200, "") == "1,200 messages expired"


def test_the_end_agrees_with_the_amount() -> None:
    assert unacknowledged_text(1) == "before it was acknowledged"
    assert unacknowledged_text(2) == "before they were acknowledged"
