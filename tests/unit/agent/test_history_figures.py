"""Telemetry fields from what a history knows."""

from __future__ import annotations

from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.history_figures import TopicTotals, figures_of
from headgate.agent.looks import ConsumerLook, LimitsLook
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import RateLimit
from headgate.record.codec import Value
from headgate.record.fields import STATE_FIELD_NAMES
from tests.unit.agent.fake_history import FakeHistory
from tests.unit.agent.looks import TOPIC, S, backlog, look

NONE = EffectiveLimit(None, "")


def values(history: FakeHistory, totals: TopicTotals) -> list[dict[str, Value]]:
    return [dict(each.values) for each in figures_of(history.topics[TOPIC], totals)]


def test_what_a_broker_counted_is_added_up_over_the_topics_loads() -> None:
    totals = TopicTotals()
    for at_s, published in ((1, 500), (2, 520), (2, 900), (3, None), (4, 530), (5, 7), (6, 9)):
        totals.note_look(look(at_s, published=published))
    assert totals.of(TOPIC) == (S, {**totals.of(TOPIC)[1], "msgs_in": 39})  # type: ignore[index]
    totals.forget(0, {TOPIC})
    assert totals.of(TOPIC) is not None
    totals.forget(7 * S)
    assert totals.of(TOPIC) is None


def test_topics_that_the_history_forgot_are_forgotten() -> None:
    totals = TopicTotals()
    totals.note_look(look(1))
    totals.forget(0, {"persistent://other/n/t"})
    assert totals.of(TOPIC) is None


def test_from_a_survey_to_a_close_look_no_rate_is_twice_what_it_was() -> None:
    totals = TopicTotals()
    for at_s, published, is_survey in (
        (60, 1_000, True), (120, 7_000, True), (130, 13_000, False), (135, 13_500, False),
    ):  # fmt: skip
        totals.note_look(look(at_s, published=published, is_survey=is_survey))
    found = totals.of(TOPIC)
    assert found is not None
    assert found[1]["msgs_in"] == 6_000 + 1_000 + 500


def test_throttled_events_are_counted_since_the_first_look() -> None:
    history, totals = ClusterHistory("c"), TopicTotals()
    for at_s, events in (
        (1, (5, 0, 7, 0, 0, 0)),
        (6, (5, 0, 9, 1, 0, 0)),
        (11, (1, 0, 9, 1, 0, 2)),
    ):
        history.note_look(look(at_s, backlog(backlog=1, events=events)))
    (found,) = figures_of(history.topics[TOPIC], totals)
    assert {
        name: value for name, value in found.values.items() if name.endswith("_events") and value
    } == {
        "throttled_subscription_messages_events": 1,
        "throttled_topic_messages_events": 2,
        "throttled_topic_bytes_events": 1,
        "throttled_broker_bytes_events": 2,
    }
    assert found.values["throttled_broker_messages_events"] == 0
    history.note_look(look(1, backlog(sent=None), topic=f"{TOPIC}-other", is_survey=True))
    (other,) = figures_of(history.topics[f"{TOPIC}-other"], totals)
    assert (other.values["msgs_out"], other.values["bytes_out"]) == (None, 0)
    assert "throttled_topic_messages_events" not in other.values


def test_a_subscription_has_its_account_and_its_levels() -> None:
    history, totals = FakeHistory(), TopicTotals()
    consumers = tuple(
        ConsumerLook(name, "", "", permits, 0, False, 0, None)
        for name, permits in (("a", 5), ("b", -2))
    )
    for at_s in (1, 61):
        seen = look(
            at_s, backlog(backlog=40, unacked=3, sent=9, consumers=consumers), published=100
        )
        history.note_look(seen)
        totals.note_look(seen)
    of_topic, of_subscription = figures_of(history.topics[TOPIC], totals)
    assert (of_topic.subscription, of_topic.since_ns, of_topic.at_ns) == (None, S, 61 * S)
    found = of_subscription.values
    assert (found["backlog_messages"], found["unacked"], found["permits"]) == (40, 3, 3)
    assert (found["msgs_out"], found["consumers"], found["type"]) == (9, 2, "Shared")
    assert sum(int(found[name] or 0) for name in STATE_FIELD_NAMES) == 60 * S
    assert (of_subscription.since_ns, of_subscription.at_ns) == (S, 61 * S)


def test_permits_that_are_not_known_are_no_sum() -> None:
    history, totals = FakeHistory(), TopicTotals()
    consumers = (ConsumerLook("a", "", "", None, 0, False, 0, None),)
    history.note_look(look(1, backlog(consumers=consumers)))
    (found,) = values(history, totals)
    assert found["permits"] is None


def test_limits_in_force_have_their_sources() -> None:
    history, totals = FakeHistory(), TopicTotals()
    seen = look(1, backlog())
    history.note_look(seen)
    totals.note_look(seen)
    limit = EffectiveLimit(RateLimit(messages=50, bytes=None, period_ns=S), "topic policy")
    relative = EffectiveLimit(
        RateLimit(messages=5, bytes=None, period_ns=S, relative=True), "namespace policy a/b"
    )
    known = history.topics[TOPIC]
    known.limits = LimitsLook(TOPIC, S, (NONE, limit, NONE), {}, limit, ())
    known.subscriptions["billing"].limits = (relative, limit, NONE)
    of_topic, of_subscription = values(history, totals)
    assert of_topic["publish_limit_messages_per_s"] == 50.0
    assert of_topic["publish_limit_source"] == "topic policy"
    assert of_subscription["limit_topic_messages"] == 50
    assert of_subscription["limit_topic_period_ns"] == S
    assert of_subscription["limit_subscription_source"] == (
        "namespace policy a/b, above the publish rate"
    )
    assert "limit_broker_messages" not in of_subscription
