"""The law of expiry: which TTL is in force, and when to look."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.expiry import (
    LOOKS_PER_TTL,
    MessageTtl,
    effective_ttl,
    first_kept_ms,
    next_expiry_look_ms,
    ttl_text,
)

MINUTE_MS = 60_000


def ttl_of(topic: int | None, namespace: int | None, broker: int) -> MessageTtl | None:
    return effective_ttl(topic_s=topic, namespace_s=namespace, namespace="acme/ns", broker_s=broker)


def test_the_most_specific_ttl_counts_and_0_is_none() -> None:
    assert ttl_of(5, 6, 7) == (5, "topic policy")
    assert ttl_of(None, 6, 7) == (6, "namespace policy acme/ns")
    assert ttl_of(None, None, 7) == (7, "broker setting ttlDurationDefaultInSeconds")
    assert ttl_of(0, 6, 7) is None
    assert ttl_of(None, 0, 7) is None
    assert ttl_of(None, None, 0) is None


def test_a_message_is_expired_at_its_ttl() -> None:
    assert first_kept_ms(100_000, MessageTtl(10, "")) == 90_001


def test_its_text() -> None:
    assert ttl_text(MessageTtl(3_600, "topic policy")) == (
        "the message TTL of 3,600 s (topic policy)"
    )


@given(
    ttl_s=st.integers(1, 2**31 - 1),
    age_ms=st.none() | st.integers(0, 2**42),
    interval_ms=st.integers(1, 10_000_000),
    has_expired=st.booleans(),
)
def test_the_next_look_is_neither_late_nor_too_soon(
    ttl_s: int, age_ms: int | None, interval_ms: int, has_expired: bool
) -> None:
    now_ms, ttl = 2**43, MessageTtl(ttl_s, "")
    oldest_ms = None if age_ms is None else now_ms - age_ms
    look_ms = next_expiry_look_ms(now_ms, ttl, oldest_ms, interval_ms, has_expired=has_expired)
    assert now_ms + 1_000 <= look_ms <= now_ms + max(interval_ms, 1_000)
    due_ms = (now_ms if oldest_ms is None else oldest_ms) + ttl_s * 1_000
    late_ms = max(look_ms - max(due_ms, now_ms), 0)
    assert late_ms <= max(1_000, ttl_s * 1_000 // LOOKS_PER_TTL)
    if look_ms < due_ms:  # sooner only because of the interval
        assert look_ms == now_ms + max(interval_ms, 1_000)


def test_the_look_at_a_backlog_and_without_one() -> None:
    ttl = MessageTtl(100, "")
    assert next_expiry_look_ms(0, ttl, None, 5 * MINUTE_MS, has_expired=False) == 100_000
    assert next_expiry_look_ms(50_000, ttl, 20_000, 5 * MINUTE_MS, has_expired=False) == 120_000
    assert next_expiry_look_ms(50_000, ttl, 20_000, 30_000, has_expired=False) == 80_000
    assert next_expiry_look_ms(50_000, ttl, -49_999, 30_000, has_expired=True) == 51_562
