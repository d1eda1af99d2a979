"""One sentence for each verdict, word by word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.base.units import NS_PER_S
from headgate.flow.account.verdict import Judgement, Verdict
from headgate.flow.limits.precedence import ABOVE_PUBLISH_RATE
from headgate.flow.limits.rate_limit import Dimension, PerSecond, RateLimit
from headgate.flow.sentences.backlog import Circumstances, limit_text, sentence


def _judgement(
    verdict: Verdict,
    second: Verdict | None = None,
    *,
    bystander: bool = False,
    dimension: Dimension | None = None,
    would_have_grown: bool | None = None,
    idle: float = 0.0,
) -> Judgement:
    shares = dict.fromkeys(Verdict, 0.0)
    shares[verdict] = 0.51
    shares[Verdict.NONE] = idle
    if second is not None:
        shares[second] = 0.49
    return Judgement(verdict, second, bystander, shares, dimension, 0.9, would_have_grown, 100)


FACTS = Circumstances(
    backlog=12_345,
    limit=RateLimit(50, 1000),
    limit_source="namespace policy acme/ns",
    waiting_subscriptions=2,
    permits=940,
    permits_max=1000,
    hungry_share=0.97,
    appended_per_s=300.0,
    acked_per_s=49.5,
    since_s=720.0,
    stopped_by="no_permits",
)


@pytest.mark.parametrize(
    ("judgement", "facts", "expected"),
    [
        (
            _judgement(Verdict.THROTTLED_TOPIC, dimension=Dimension.MESSAGES),
            FACTS,
            "THROTTLED_TOPIC: the topic limit of 50 msg/s (namespace policy acme/ns) held 2 waiting"
            " subscriptions for the last 12 min; the consumer had room for 97 % of the time (940 of"
            " 1,000 permits are free); 300 msg/s are published and each of the 2 subscriptions"
            " needs them, so raise it above 600 msg/s.",
        ),
        (
            _judgement(Verdict.THROTTLED_TOPIC, dimension=Dimension.BYTES),
            Circumstances(
                limit=RateLimit(None, 20_000), appended_per_s=90.0, bytes_per_message=246.4
            ),
            "THROTTLED_TOPIC: the topic limit of 20,000 B/s held this subscription; 22,176 B/s are"
            " published, so raise it above that, or above the sum if several subscriptions share"
            " it.",
        ),
        (
            _judgement(Verdict.THROTTLED_TOPIC, dimension=Dimension.MESSAGES),
            Circumstances(
                limit=RateLimit(5, None),
                appended_per_s=60.0,
                partitions=3,
                since_s=3540.0,
                since_at_least=True,
                limit_source="topic policy",
                waiting_subscriptions=1,
            ),
            "THROTTLED_TOPIC: the topic limit of 5 msg/s (topic policy) on each of 3 partitions"
            " held this subscription for at least the last 59 min; 20 msg/s are published to a"
            " partition on average, so raise it above that.",
        ),
        (
            _judgement(Verdict.THROTTLED_SUBSCRIPTION, dimension=Dimension.BYTES),
            Circumstances(limit=RateLimit(None, 20_000), appended_per_s=90.0),
            "THROTTLED_SUBSCRIPTION: the subscription limit of 20,000 B/s held this subscription;"
            " more is published than it lets through, so raise it.",
        ),
        (
            _judgement(Verdict.THROTTLED_BROKER, dimension=Dimension.MESSAGES),
            Circumstances(limit=RateLimit(100, None), appended_per_s=90.0, hungry_share=1.0),
            "THROTTLED_BROKER: the broker-wide limit of 100 msg/s held this subscription; the"
            " consumer had room for 100 % of the time; 90 msg/s are published here, so raise it"
            " above what all topics need together.",
        ),
        (
            _judgement(Verdict.THROTTLED_BROKER, dimension=Dimension.BYTES, would_have_grown=True),
            Circumstances(limit=RateLimit(None, 1000)),
            "THROTTLED_BROKER: the broker-wide limit of 1,000 B/s held this subscription; raising"
            " it helps only in part: less is consumed than published.",
        ),
        (
            _judgement(Verdict.THROTTLED_SUBSCRIPTION, Verdict.CONSUMER),
            Circumstances(),
            "THROTTLED_SUBSCRIPTION: the subscription limit held this subscription; CONSUMER is"
            " within 5 % of it (49 % of the time), so consider both.",
        ),
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(
                acked_per_s=49.5, appended_per_s=300, since_s=90, stopped_by="no_permits"
            ),
            "CONSUMER: the consumer acknowledges only 49.5 msg/s of 300 msg/s published, for 90 s"
            " now (the consumer's receiver queue was full); faster or more consumers would help, a"
            " higher limit would not.",
        ),
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(one_at_a_time=True),
            "CONSUMER: the consumer is the bottleneck; a faster consumer would help, another would"
            " only stand by, a higher limit would not.",
        ),
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(one_at_a_time=True, partitions=4),
            "CONSUMER: the consumer is the bottleneck; faster or more consumers would help, a"
            " higher limit would not.",
        ),
        (
            _judgement(
                Verdict.CONSUMER,
                Verdict.THROTTLED_TOPIC,
                bystander=True,
                dimension=Dimension.MESSAGES,
            ),
            Circumstances(limit=RateLimit(500, None), limit_source="topic policy"),
            "CONSUMER: the consumer is the bottleneck; the topic limit of 500 msg/s (topic policy)"
            " is not the cause; faster or more consumers would help, a higher limit would not.",
        ),
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(limit=RateLimit(500, None), limit_source="topic policy"),
            "CONSUMER: the consumer is the bottleneck; the limit of 500 msg/s (topic policy) is not"
            " what holds it back; faster or more consumers would help, a higher limit would not.",
        ),
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(
                acked_per_s=0.02, appended_per_s=20.04, since_s=23, stopped_by="awaiting_ack"
            ),
            "CONSUMER: the consumer acknowledges nothing of 20 msg/s published, for 23 s now"
            " (the consumer holds everything, unacknowledged); check whether it hangs, fails or"
            " never acknowledges.",
        ),
        # Producers that a quota holds publish no faster than the consumer acknowledges.
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(acked_per_s=50.0, appended_per_s=50.2, backlog=2_000),
            "CONSUMER: the consumer acknowledges 50 msg/s of 50.2 msg/s published, no more than"
            " that, so the backlog does not shrink; faster or more consumers would help, a higher"
            " limit would not.",
        ),
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(
                evicted=12_000,
                evicted_by="the size quota of 1 MiB (topic policy)",
                delivered_per_s=199.0,
                acked_per_s=0.0,
                appended_per_s=200.0,
                since_s=60,
                stopped_by="awaiting_ack",
            ),
            "CONSUMER: the size quota of 1 MiB (topic policy) evicted 12,000 messages before the"
            " consumer acknowledged them; it was handed 199 msg/s of 200 msg/s published and"
            " acknowledged nothing in time, for 60 s now (the consumer holds everything,"
            " unacknowledged); it receives as fast as is published: let it acknowledge earlier, or"
            " raise the quota.",
        ),
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(evicted=1, delivered_per_s=50.0, acked_per_s=40.0, appended_per_s=200.0),
            "CONSUMER: a backlog quota evicted 1 message before the consumer acknowledged it; it"
            " was handed 50 msg/s of 200 msg/s published and acknowledged 40 msg/s in time; faster"
            " or more consumers, earlier acknowledgements or a larger quota would help.",
        ),
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(evicted=5, delivered_per_s=0.0, acked_per_s=0.0, appended_per_s=9.0),
            "CONSUMER: a backlog quota evicted 5 messages before the consumer acknowledged them;"
            " it was handed nothing; check whether it hangs; a larger quota only delays this.",
        ),
        (
            _judgement(Verdict.NO_CONSUMER),
            Circumstances(evicted=5, evicted_by="the time quota of 30 s (topic policy)", backlog=1),
            "NO_CONSUMER: no consumer is connected, 1 message waits; connect one, or delete the"
            " subscription if nobody needs it; the time quota of 30 s (topic policy) evicted 5"
            " messages before they were acknowledged.",
        ),
        (
            _judgement(Verdict.NO_CONSUMER),
            Circumstances(expired=1_200, expired_by="the message TTL of 60 s (topic policy)"),
            "NO_CONSUMER: no consumer is connected; connect one, or delete the subscription if"
            " nobody needs it; the message TTL of 60 s (topic policy) expired 1,200 messages"
            " before they were acknowledged.",
        ),
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(expired=1),
            "CONSUMER: the consumer is the bottleneck; faster or more consumers would help, a"
            " higher limit would not; 1 message expired before it was acknowledged.",
        ),
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(limit=RateLimit(None, 9_000), limit_source="topic policy"),
            "CONSUMER: the consumer is the bottleneck; the limit of 9,000 B/s (topic policy) is not"
            " what holds it back; faster or more consumers would help, a higher limit would not.",
        ),
        # About as fast as the limit: under load the verdict may be either of the two.
        (
            _judgement(Verdict.CONSUMER),
            Circumstances(
                acked_per_s=455.0,
                appended_per_s=600.0,
                limit=RateLimit(500, None),
                limit_source="topic policy",
            ),
            "CONSUMER: the consumer acknowledges only 455 msg/s of 600 msg/s published; the limit"
            " of 500 msg/s (topic policy) lets hardly more through; faster or more consumers and a"
            " higher limit would help together, neither alone.",
        ),
        (
            _judgement(
                Verdict.CONSUMER,
                Verdict.THROTTLED_TOPIC,
                bystander=True,
                dimension=Dimension.BYTES,
            ),
            Circumstances(
                acked_per_s=48.0,
                appended_per_s=60.0,
                bytes_per_message=100.0,
                limit=RateLimit(None, 5_000),
                limit_source="topic policy",
                one_at_a_time=True,
            ),
            "CONSUMER: the consumer acknowledges only 48 msg/s of 60 msg/s published; the topic"
            " limit of 5,000 B/s (topic policy) lets hardly more through; a faster consumer and a"
            " higher limit would help together, neither alone.",
        ),
        (
            _judgement(Verdict.CONSUMER, Verdict.THROTTLED_BROKER, dimension=Dimension.MESSAGES),
            Circumstances(acked_per_s=99.0, appended_per_s=200.0),
            "CONSUMER: the consumer acknowledges only 99 msg/s of 200 msg/s published; faster or"
            " more consumers would help; THROTTLED_BROKER is within 5 % of it (49 % of the time),"
            " so consider both.",
        ),
        (
            _judgement(Verdict.THROTTLED_SUBSCRIPTION, dimension=Dimension.BYTES),
            Circumstances(
                limit=RateLimit(None, 500),
                appended_per_s=60.0,
                bytes_per_message=100.0,
                partitions=3,
            ),
            "THROTTLED_SUBSCRIPTION: the subscription limit of 500 B/s on each of 3 partitions held"
            " this subscription; 2,000 B/s are published to a partition on average, so raise it"
            " above that.",
        ),
        (
            _judgement(Verdict.NO_CONSUMER),
            Circumstances(backlog=12_345, since_s=3 * 3600),
            "NO_CONSUMER: no consumer has been connected for 3 h, 12,345 messages wait; connect"
            " one, or delete the subscription if nobody needs it.",
        ),
        (
            _judgement(Verdict.NO_CONSUMER),
            Circumstances(backlog=1),
            "NO_CONSUMER: no consumer is connected, 1 message waits; connect one, or delete the"
            " subscription if nobody needs it.",
        ),
        (
            _judgement(Verdict.BROKER),
            Circumstances(),
            "BROKER: the broker itself took most of the time (seeking, failing over, reading from"
            " disk or sending), not a limit or a consumer.",
        ),
        (
            _judgement(Verdict.BROKER),
            Circumstances(
                backlog=3_000, stuck_share=0.9, permits=1_000, permits_max=1_000, since_s=300.0
            ),
            "BROKER: the dispatcher is stuck for 5 min: the consumer has 1,000 of 1,000 permits"
            " free, 3,000 messages wait, and the broker sends nothing; unload the topic.",
        ),
        (_judgement(Verdict.NONE, idle=1.0), Circumstances(), "NONE: nothing is waiting."),
        (
            _judgement(Verdict.NONE, idle=1.0),
            Circumstances(delayed=1_200),
            "NONE: nothing is waiting; 1,200 messages are not due yet.",
        ),
        (
            _judgement(Verdict.NO_CONSUMER),
            Circumstances(backlog=1, delayed=1),
            "NO_CONSUMER: no consumer is connected, 1 message waits; connect one, or delete the"
            " subscription if nobody needs it; 1 message is not due yet.",
        ),
        (
            _judgement(Verdict.NONE),
            Circumstances(acked_per_s=300.0),
            "NONE: the consumer keeps up at 300 msg/s; the unacknowledged messages are in flight.",
        ),
    ],
)
def test_sentence(judgement: Judgement, facts: Circumstances, expected: str) -> None:
    assert sentence(judgement, facts) == expected


@pytest.mark.parametrize(
    "more",
    [
        {"acked_per_s": 449.0},
        {"partitions": 2},
        {"batches_count_as_one": True},
        {"evicted": 7},
        {"silent_s": 60.0, "backlog": 900},
        {"limit": RateLimit(None, 500)},  # how large messages are is not known
    ],
)
def test_a_limit_that_is_not_near_is_not_to_be_raised(more: dict[str, Any]) -> None:
    near = Circumstances(acked_per_s=455.0, limit=RateLimit(500, None), limit_source="topic policy")
    judgement = _judgement(Verdict.CONSUMER)
    assert "together" in sentence(judgement, near)
    assert "together" not in sentence(judgement, replace(near, **more))


@pytest.mark.parametrize(
    ("limit", "waiting", "expected"),
    [
        (101, 1, "100 msg/s are published, which it lets through, so it need not be raised."),
        (99, 1, "100 msg/s are published, so raise it above that."),
        (
            200,
            2,
            "100 msg/s are published and each of the 2 subscriptions needs them, 200 msg/s in all,"
            " which it lets through, so it need not be raised.",
        ),
        (
            199,
            2,
            "100 msg/s are published and each of the 2 subscriptions needs them, so raise it above"
            " 200 msg/s.",
        ),
        # Whether it is enough for all who share it is not known.
        (
            101,
            0,
            "100 msg/s are published, which it lets through where no other subscription shares it.",
        ),
        (
            99,
            0,
            "100 msg/s are published, so raise it above that, or above the sum if several"
            " subscriptions share it.",
        ),
    ],
)
def test_a_limit_that_is_enough_need_not_be_raised(limit: int, waiting: int, expected: str) -> None:
    judgement = _judgement(Verdict.THROTTLED_TOPIC, dimension=Dimension.MESSAGES)
    facts = Circumstances(
        limit=RateLimit(limit, None), waiting_subscriptions=waiting, appended_per_s=100.0
    )
    assert sentence(judgement, facts).partition("; ")[2] == expected


@pytest.mark.parametrize(
    ("verdict", "at_end", "expected"),
    [
        (
            Verdict.THROTTLED_SUBSCRIPTION,
            RateLimit(250, None),
            "250 msg/s; 84.1 msg/s are published, which it lets through, so it need not be raised.",
        ),
        (
            Verdict.THROTTLED_SUBSCRIPTION,
            RateLimit(70, None),
            "70 msg/s; 84.1 msg/s are published, so raise it above that.",
        ),
        (
            Verdict.THROTTLED_BROKER,
            RateLimit(250, None),
            "250 msg/s; 84.1 msg/s are published here.",
        ),
        (Verdict.THROTTLED_TOPIC, RateLimit(None, 9_000), "gone."),
        (Verdict.THROTTLED_TOPIC, None, "gone."),
    ],
)
def test_a_limit_that_was_changed_is_reported_as_it_held(
    verdict: Verdict, at_end: RateLimit | None, expected: str
) -> None:
    facts = Circumstances(
        limit=RateLimit(60, None),
        limit_changed=True,
        limit_at_end=at_end,
        appended_per_s=84.1,
    )
    said = sentence(_judgement(verdict, dimension=Dimension.MESSAGES), facts)
    assert "limit of 60 msg/s held this subscription; by the end it was " in said
    assert said.partition("by the end it was ")[2] == expected


def test_a_limit_of_a_longer_period_names_it() -> None:
    limit = RateLimit(100, None, 360 * NS_PER_S)
    assert limit_text(limit, Dimension.MESSAGES) == "100 msg per 360 s"


def test_a_limit_that_moves_says_what_it_is_above() -> None:
    relative = RateLimit(45, 900, relative=True)
    limit = relative.above(PerSecond(200.0, 0.0))
    assert limit_text(limit, Dimension.MESSAGES) == "245 msg/s (45 above the publish rate)"
    facts = Circumstances(limit=limit, limit_source="topic policy")
    judgement = _judgement(Verdict.THROTTLED_TOPIC, dimension=Dimension.MESSAGES)
    assert sentence(judgement, facts).startswith(
        "THROTTLED_TOPIC: the topic limit of 245 msg/s (topic policy, 45 above the publish rate)"
    )


def test_a_limit_that_follows_the_publish_rate_has_its_remedy() -> None:
    """Such a backlog drains by what is added, however old it is."""
    limit = RateLimit(45, 900, relative=True).above(PerSecond(200.0, 0.0))
    judgement = replace(
        _judgement(Verdict.THROTTLED_TOPIC, dimension=Dimension.MESSAGES), growth=-100
    )
    facts = Circumstances(limit=limit, limit_source="topic policy", appended_per_s=200.0)
    remedy = (
        " held this subscription; it follows what is published, so the backlog shrinks by at most"
        " the 45 msg/s on top of that: raise the amount on top, or set a fixed limit."
    )
    assert sentence(judgement, facts).endswith(remedy)
    shared = replace(facts, limit=replace(limit, times=2))
    assert "on top of that, divided among all that share it: raise" in sentence(judgement, shared)
    # Records have no amount on top, only that the limit follows.
    recorded = replace(
        facts, limit=RateLimit(245, None), limit_source=f"topic policy{ABOVE_PUBLISH_RATE}"
    )
    assert "by at most what is on top of that: raise" in sentence(judgement, recorded)
    fixed = replace(facts, limit=RateLimit(245, None))
    assert sentence(judgement, fixed).endswith("held this subscription.")


@pytest.mark.parametrize("bystander", [False, True])
def test_a_limit_below_what_is_published_comes_next(*, bystander: bool) -> None:
    judgement = _judgement(
        Verdict.CONSUMER,
        Verdict.THROTTLED_TOPIC if bystander else None,
        bystander=bystander,
        dimension=Dimension.MESSAGES if bystander else None,
    )
    facts = Circumstances(
        limit=RateLimit(500, None),
        limit_source="topic policy",
        appended_per_s=600.0,
        acked_per_s=400.0,
    )
    said = sentence(judgement, facts)
    assert said.endswith(
        "; faster or more consumers would help until that limit holds, which lets less through"
        " than the 600 msg/s published: then raise it, too."
    )
    for more in (
        {"appended_per_s": 499.0},
        {"limit": None},
        {"partitions": 2},
        {"limit": RateLimit(45, None, relative=True).above(PerSecond(455.0, 0.0))},
        {"limit_source": f"topic policy{ABOVE_PUBLISH_RATE}"},
    ):
        assert "until that limit holds" not in sentence(judgement, replace(facts, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (Circumstances(permits=5), "no consumer was connected for most of the time, now one is."),
        (
            Circumstances(permits=5, partitions=4, partitions_without_consumer=3, backlog=2),
            "3 of 4 partitions have no consumer, 2 messages wait; connect one to each.",
        ),
    ],
)
def test_who_has_come_by_now_is_not_missing(facts: Circumstances, text: str) -> None:
    assert sentence(_judgement(Verdict.NO_CONSUMER), facts) == f"NO_CONSUMER: {text}"


@pytest.mark.parametrize(
    ("verdict", "change", "end"),
    [
        (Verdict.THROTTLED_SUBSCRIPTION, {}, "raise it above the batches that are published."),
        (
            Verdict.THROTTLED_TOPIC,
            {"waiting_subscriptions": 3},
            ", once for each of the 3 subscriptions.",
        ),
        (Verdict.THROTTLED_BROKER, {}, "the batches that are published to all topics."),
        (
            Verdict.THROTTLED_TOPIC,
            {"limit_changed": True, "limit_at_end": RateLimit(10**6, None)},
            "by the end it was 1,000,000 msg/s.",
        ),
    ],
)
def test_where_a_batch_counts_as_one_the_advice_is_about_batches(
    verdict: Verdict, change: dict[str, object], end: str
) -> None:
    facts = replace(FACTS, batches_count_as_one=True, waiting_subscriptions=1)
    judgement = _judgement(verdict, dimension=Dimension.MESSAGES)
    assert sentence(judgement, replace(facts, **change)).endswith(end)  # type: ignore[arg-type]


@pytest.mark.parametrize("verdict", Verdict)
def test_what_is_inferred_says_so_at_its_end(verdict: Verdict) -> None:
    measured = sentence(_judgement(verdict), FACTS)
    inferred = sentence(replace(_judgement(verdict), is_inferred=True), FACTS)
    assert inferred == f"{measured[:-1]} (inferred from counters)."


HUNG = replace(
    FACTS, limit=None, acked_per_s=40.0, silent_s=95.0, since_s=None, stopped_by="awaiting_ack"
)


def test_a_consumer_that_fell_silent_may_hang() -> None:
    said = sentence(_judgement(Verdict.CONSUMER), HUNG)
    assert said == (
        "CONSUMER: the consumer acknowledges only 40 msg/s of 300 msg/s published, nothing for the"
        " last 95 s (the consumer holds everything, unacknowledged); check whether it hangs, fails"
        " or never acknowledges."
    )


@pytest.mark.parametrize(
    "facts",
    [
        replace(HUNG, silent_s=29.0),
        replace(HUNG, silent_s=None),
        replace(HUNG, acked_per_s=0.1, silent_s=45.0),
        replace(HUNG, backlog=0),
    ],
    ids=["a moment", "not known", "its usual pause", "nothing waits"],
)
def test_a_pause_is_no_sign(facts: Circumstances) -> None:
    assert "look whether it hangs" not in sentence(_judgement(Verdict.CONSUMER), facts)


def test_what_waited_for_a_moment_needs_no_faster_consumer() -> None:
    """As over a restart of the broker, for which one message was eight seconds old."""
    judgement = replace(_judgement(Verdict.CONSUMER, idle=0.86), growth=0)
    kept = Circumstances(acked_per_s=2.1, appended_per_s=2.1, stopped_by="awaiting_ack")
    assert sentence(judgement, kept) == (
        "CONSUMER: the consumer acknowledges 2.1 msg/s of 2.1 msg/s published; messages waited for"
        " 14 % of the time, and none does any more."
    )
    most = replace(judgement, shares={**judgement.shares, Verdict.NONE: 0.3})
    assert "the backlog does not shrink" not in sentence(most, kept)
    assert "the backlog does not shrink" in sentence(most, replace(kept, backlog=500))


def test_a_consumer_that_takes_a_little_more_than_is_published_drains_the_backlog() -> None:
    """It is not blamed for the rate of the producers, which it exceeds."""
    judgement = replace(_judgement(Verdict.CONSUMER), growth=-250)
    drains = Circumstances(acked_per_s=99.3, appended_per_s=95.1, backlog=2_000)
    said = sentence(judgement, drains)
    assert "the backlog drains at the consumer's own pace of 99.3 msg/s" in said
    assert "published" not in said
    stays = sentence(replace(judgement, growth=-50), drains)
    assert "acknowledges 99.3 msg/s of 95.1 msg/s published, no more than that" in stays
