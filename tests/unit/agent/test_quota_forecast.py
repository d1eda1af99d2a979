"""Seconds to the breach of a quota, from looks of different kinds, and who causes it."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.agent import quota_forecast
from headgate.agent.quota_forecast import Level, QuotaForecast, quota_state
from headgate.flow.quota.backlog_quota import QuotaType
from tests.unit.agent.looks import TOPIC, S, backlog, look

MIB = 1 << 20


def grown(period_s: float, seconds: float, *, survey: bool = False) -> Level:
    """The size quota of 100 MiB after a backlog grew by 1 MiB a second."""
    forecast = QuotaForecast()
    forecast.note_look(look(0, backlog(backlog_bytes=0), quota_size_bytes=100 * MIB))
    for step in count(1):
        at_s = step * period_s
        if at_s > seconds:
            break
        forecast.note_look(
            look(
                at_s,
                backlog(backlog_bytes=round(at_s * MIB)),
                backlog("fast", backlog_bytes=1),
                quota_size_bytes=None if survey else 100 * MIB,
                is_survey=survey,
            )
        )
    (level,) = forecast.of_topic(TOPIC)
    return level


@pytest.mark.parametrize("period_s", [1.0, 5.0, 15.0, 60.0])
def test_a_size_quota_is_reached_at_the_present_rate(period_s: float) -> None:
    level = grown(period_s, 60)
    assert (level.type, level.subscription, level.used) == (QuotaType.SIZE, "billing", 60 * MIB)
    assert level.seconds_to_breach == pytest.approx(40.0, rel=0.02)
    assert level.band == (pytest.approx(40.0, rel=0.02), pytest.approx(40.0, rel=0.02))


def test_a_survey_without_quotas_goes_on_with_those_that_are_known() -> None:
    assert grown(20.0, 60, survey=True).seconds_to_breach == pytest.approx(40.0, rel=0.02)
    forecast = QuotaForecast()
    forecast.note_look(look(0, backlog(backlog_bytes=5), is_survey=True))
    assert forecast.of_topic(TOPIC) == []


def test_an_age_that_a_cluster_computes_each_minute_grows_as_time_does() -> None:
    forecast = QuotaForecast()
    found = []
    for second in range(0, 400, 5):
        age_s = float(second // 60 * 60)  # the check of quotas, each minute
        forecast.note_look(
            look(second, quota_age_s=3_600, oldest_age_s=age_s, oldest_subscription="audit")
        )
        (level,) = forecast.of_topic(TOPIC)
        if level.seconds_to_breach is not None:
            found.append((3_600 - age_s, level.seconds_to_breach))
            assert level.subscription == "audit"
            assert level.band is None or level.band.earliest_s >= 3_600 - age_s
    assert len(found) > 50
    # Never sooner than a second in a second allows, and not much later.
    assert all(left <= seconds <= 1.1 * left for left, seconds in found)


def test_what_stands_still_or_falls_has_no_breach() -> None:
    forecast = QuotaForecast()
    for second in range(0, 200, 5):
        level = min(second, 60)
        forecast.note_look(
            look(second, backlog(backlog_bytes=level * MIB), quota_size_bytes=100 * MIB)
        )
    assert forecast.of_topic(TOPIC)[0].seconds_to_breach is None
    forecast.note_look(look(205, backlog(backlog_bytes=10 * MIB), quota_size_bytes=100 * MIB))
    assert forecast.of_topic(TOPIC)[0].seconds_to_breach is None
    assert forecast.ahead() == []


def test_a_reached_quota_is_0_seconds_away() -> None:
    forecast = QuotaForecast()
    forecast.note_look(look(0, backlog(backlog_bytes=101), quota_size_bytes=100))
    (level,) = forecast.ahead()
    assert (level.exceeded, level.seconds_to_breach) == (True, 0.0)
    assert "the topic is over its 100 B quota" in quota_state(level).sentence


def test_figures_that_are_not_known_are_no_zero() -> None:
    forecast = QuotaForecast()
    forecast.note_look(
        look(0, backlog(backlog_bytes=None), backlog_bytes=None, quota_size_bytes=100)
    )
    assert forecast.of_topic(TOPIC) == []
    forecast.note_look(look(1, backlog(backlog=7), backlog_bytes=60, quota_size_bytes=100))
    forecast.note_look(look(2, backlog_bytes=None, quota_size_bytes=100))
    (level,) = forecast.of_topic(TOPIC)
    assert (level.used, level.subscription) == (60.0, "billing")


def test_a_quota_that_was_taken_away_is_forgotten_and_so_is_a_topic() -> None:
    forecast = QuotaForecast()
    forecast.note_look(
        look(0, backlog_bytes=1, quota_size_bytes=100, quota_age_s=60, oldest_age_s=1.0)
    )
    forecast.note_look(look(1, backlog_bytes=1, quota_size_bytes=100))
    assert [level.type for level in forecast.all()] == [QuotaType.SIZE]
    forecast.note_look(look(2, quota_size_bytes=-1))
    assert list(forecast.all()) == []
    forecast.note_look(look(3, backlog_bytes=1, quota_size_bytes=100))
    forecast.forget(4 * S)
    assert list(forecast.all()) == []


def test_topics_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_forecast, "TOPICS_MAX", 2)
    forecast = QuotaForecast()
    for name in ("a", "b", "a", "c"):
        forecast.note_look(look(0, topic=name, backlog_bytes=1, quota_size_bytes=100))
    assert [level.topic for level in forecast.all()] == ["a", "c"]


def test_the_sentence_names_the_subscription() -> None:
    state = quota_state(grown(5.0, 60))
    assert state.sentence == (
        "the topic is at 60 % of its 100 MiB quota, subscription billing has the largest backlog, "
        "at the present rate it breaks in 40 s, then: its policy is not known"
    )
    assert (state.use, state.type, state.exceeded) == (0.6, "size", False)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 100),
            st.none() | st.integers(-5, 1_000),
            st.none() | st.integers(-1, 900),
            st.none() | st.floats(-1, 1e6),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_no_looks_give_a_wrong_kind_of_number(looks: list[tuple[object, ...]]) -> None:
    forecast, at_s = QuotaForecast(), 0
    for step, used, limit, age_s, survey in looks:
        at_s += int(step)  # type: ignore[call-overload]
        forecast.note_look(
            look(
                at_s, backlog_bytes=used, quota_size_bytes=limit, quota_age_s=limit,
                oldest_age_s=age_s, is_survey=survey,
            )
        )  # fmt: skip
        for level in forecast.all():
            assert level.limit > 0
            assert level.used >= 0
            assert level.seconds_to_breach is None or level.seconds_to_breach >= 0
            assert level.exceeded == (level.seconds_to_breach == 0)
            quota_state(level)
