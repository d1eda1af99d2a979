"""What operators read about a limiter's minute."""

from __future__ import annotations

from dataclasses import replace

from headgate.flow.sentences.limiter import LimiterFacts, limiter_sentence

BUSY = LimiterFacts(
    level="topic",
    dimension="messages",
    limit_text="200 msg/s",
    source="topic policy",
    granted=12_000,
    held=48_000,
    use=1.0,
    waiting_share=0.97,
    waiters_max=2,
    waiters=(("one", 9_000), ("two", 3_000)),
)


def test_a_limiter_that_held() -> None:
    assert limiter_sentence(BUSY) == (
        "the topic's dispatch limit of 200 msg/s (topic policy) let 12,000 messages through, 100 %"
        " of what it allows; it had waiters for 97 % of the time, at most 2 at once, and what"
        " waits grew by 48,000 messages; it held one (granted 9,000) and two (granted 3,000)"
    )


def test_of_many_waiters_three_are_named() -> None:
    waiters = tuple((name, None) for name in "abcde")
    assert limiter_sentence(replace(BUSY, waiters=waiters)).endswith(
        "; it held a, b, c and 2 others"
    )
    assert limiter_sentence(replace(BUSY, waiters=waiters[:4])).endswith(
        "; it held a, b, c and 1 other"
    )
    assert limiter_sentence(replace(BUSY, waiters=waiters[:1])).endswith("; it held a")


def test_a_limiter_that_held_nobody() -> None:
    idle = replace(BUSY, level="publish_broker", dimension="bytes", limit_text="1,000 B/s")
    idle = replace(idle, granted=1, use=0.0, waiting_share=0.001, waiters=())
    assert limiter_sentence(idle) == (
        "the broker-wide publish limit of 1,000 B/s (topic policy) let 1 byte through, 0 % of what"
        " it allows; it had no waiters"
    )


def test_what_is_not_known_is_left_out() -> None:
    assert limiter_sentence(LimiterFacts("pool", "turns")) == (
        "the pool limit was in force; it had no waiters"
    )
    bare = LimiterFacts("publish_topic", "turns", granted=3, waiting_share=0.5)
    assert limiter_sentence(bare) == (
        "the topic's publish limit let 3 through; it had waiters for 50 % of the time"
    )
