"""One topic from look to look."""

from __future__ import annotations

from dataclasses import replace

from headgate.agent.inferred_topic import InferredTopic
from headgate.base.units import NS_PER_S
from headgate.flow.account.account import Cell
from tests.unit.agent.scenario import EMPTY, TOPIC, topic_look


def _topic() -> InferredTopic:
    topic = InferredTopic(TOPIC, "b1")
    topic.note_look(topic_look(NS_PER_S, EMPTY, published=100, published_bytes=1_000))
    return topic


def _transition_s(topic: InferredTopic) -> float:
    return topic.subscriptions["s"].cells_ns[Cell.TRANSITION] / NS_PER_S


def test_rates_come_from_counters() -> None:
    topic = _topic()
    assert topic.publish_rates() == (None, None)
    topic.note_look(topic_look(3 * NS_PER_S, EMPTY, published=300, published_bytes=None))
    assert topic.publish_rates() == (100, None)
    topic.note_look(topic_look(4 * NS_PER_S, EMPTY, published=50, published_bytes=9))
    assert topic.publish_rates() == (None, None)


def test_a_look_that_comes_late_is_ignored() -> None:
    topic = _topic()
    topic.note_look(topic_look(NS_PER_S, EMPTY, published=7))
    assert topic.look is not None
    assert topic.look.published == 100
    assert topic.subscriptions["s"].looks == 1


def test_another_owner_or_counters_that_fell_are_a_loading() -> None:
    topic = _topic()
    topic.note_look(topic_look(2 * NS_PER_S, EMPTY, published=120, owner="b1"))
    assert _transition_s(topic) == 0
    topic.note_look(topic_look(3 * NS_PER_S, EMPTY, published=10))
    assert _transition_s(topic) == 1
    topic.note_look(topic_look(4 * NS_PER_S, EMPTY, published=10, owner="b2"))
    assert (_transition_s(topic), topic.owner) == (2, "b2")
    topic.note_gone(5 * NS_PER_S)
    topic.note_look(topic_look(6 * NS_PER_S, EMPTY, published=10, owner="b2"))
    assert (_transition_s(topic), topic.gone_ns) == (4, None)


def test_figures_of_a_survey_that_may_be_older_are_ignored() -> None:
    topic = _topic()
    topic.note_look(topic_look(60 * NS_PER_S, EMPTY, published=6_000))
    survey = topic_look(61 * NS_PER_S, EMPTY, published=500, is_survey=True)
    topic.note_look(survey)
    topic.note_look(topic_look(65 * NS_PER_S, EMPTY, published=6_500))
    assert _transition_s(topic) == 0
    assert topic.subscriptions["s"].looks == 3
    topic.note_look(replace(survey, at_ns=156 * NS_PER_S, published=9_000))
    assert topic.subscriptions["s"].looks == 4


def test_a_survey_shows_that_another_broker_has_the_topic() -> None:
    topic = _topic()
    topic.note_look(topic_look(2 * NS_PER_S, EMPTY, published=5, owner="b2", is_survey=True))
    assert topic.owner == "b2"


def test_nothing_follows_from_what_grew_between_the_first_survey_and_a_close_look() -> None:
    topic = InferredTopic(TOPIC, "b1")
    topic.note_look(topic_look(NS_PER_S, EMPTY, published=100, is_survey=True))
    topic.note_look(topic_look(2 * NS_PER_S, EMPTY, published=6_000))
    topic.note_look(topic_look(4 * NS_PER_S, EMPTY, published=6_200))
    assert topic.publish_rates()[0] == 100
    assert topic.subscriptions["s"].opened_ns == 2 * NS_PER_S


def test_a_subscription_that_a_look_lacks_is_gone() -> None:
    topic = _topic()
    topic.note_look(topic_look(2 * NS_PER_S, replace(EMPTY, name="t")))
    assert list(topic.subscriptions) == ["t"]


def test_from_surveys_to_a_close_look_nothing_grows_by_more_than_in_that_time() -> None:
    topic = InferredTopic(TOPIC, "b1")
    late = 50  # seconds that the figures of a survey are old

    def survey(at_s: int) -> None:
        sub = replace(EMPTY, backlog=10 * (at_s - late), sent=90 * (at_s - late), events=None)
        look = topic_look(at_s * NS_PER_S, sub, published=100 * (at_s - late), is_survey=True)
        topic.note_look(look)

    def close(at_s: int) -> None:
        sub = replace(EMPTY, backlog=10 * at_s, sent=90 * at_s, last_acked_ms=at_s)
        topic.note_look(topic_look(at_s * NS_PER_S, sub, published=100 * at_s))

    def counts() -> tuple[int, int, int, int]:
        track = topic.subscriptions["s"].track
        assert track is not None
        last = track.phase.last
        return last.appended, last.sent, last.acked, last.rewound

    close(100)
    survey(200)
    survey(260)
    before = counts()
    close(270)
    grown = tuple(now - then for now, then in zip(counts(), before, strict=True))
    assert grown == (1_000, 900, 900, 0)
    assert topic.subscriptions["s"].rates[0] == 90
    assert topic.publish_rates() == (None, None)
    close(275)
    assert topic.publish_rates()[0] == 100


def test_without_a_rate_from_surveys_nothing_has_grown_until_the_close_look() -> None:
    topic = InferredTopic(TOPIC, "b1")
    topic.note_look(topic_look(NS_PER_S, EMPTY, published=100))
    topic.note_look(topic_look(200 * NS_PER_S, EMPTY, published=None, is_survey=True))
    topic.note_look(topic_look(210 * NS_PER_S, replace(EMPTY, backlog=900), published=9_000))
    track = topic.subscriptions["s"].track
    assert track is not None
    last = track.phase.last
    assert (last.backlog, last.acked, last.rewound) == (900, 0, 0)
