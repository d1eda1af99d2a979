"""Topics that surveys alone show have forecasts, and those near their quota get close looks."""

from __future__ import annotations

import pytest

from headgate.agent import quota_guard
from headgate.agent.looks import QuotaLook, TopicLook
from headgate.agent.quota_forecast import Level
from headgate.agent.quota_guard import CHECKED_NS, QUOTAS_NS, QuotaGuard
from tests.unit.agent.fake_history import FakeTopic
from tests.unit.agent.looks import TOPIC, S, backlog, look

MIB = 1 << 20
NAMESPACE = "acme/orders"


class Played:
    """A guard, with the last look at each topic."""

    def __init__(self, size_bytes: int | None = 100 * MIB) -> None:
        self.guard = QuotaGuard()
        self.topics: dict[str, FakeTopic] = {}
        if size_bytes is not None:
            self.guard.note_quotas(QuotaLook(NAMESPACE, 0, size_bytes, None))

    def note(self, seen: TopicLook) -> None:
        known = self.topics.get(seen.topic)
        self.guard.note_look(seen, known and known.look)
        self.topics[seen.topic] = FakeTopic(seen.topic, seen.owner, seen, seen.at_ns)

    def survey(self, at_s: float, size: int | None, topic: str = TOPIC) -> None:
        """A survey, which tells the size of a topic's backlog and no quota."""
        self.note(look(at_s, backlog(backlog=5), topic=topic, backlog_bytes=size, is_survey=True))

    def suspects(self, count: int, at_s: float) -> list[str]:
        return self.guard.suspects(count, round(at_s * S), self.topics)

    def level(self, topic: str = TOPIC) -> Level:
        (found,) = self.guard.forecast.of_topic(topic)
        return found


def test_the_rate_is_that_from_survey_to_survey() -> None:
    played = Played()
    for minute in range(4):
        played.survey(60 * minute, (5 + 10 * minute) * MIB)
    level = played.level()
    assert (level.limit, level.used, level.subscription) == (100 * MIB, 35 * MIB, "billing")
    assert level.period_s == 60.0
    assert level.seconds_to_breach == pytest.approx(65 * 6, rel=0.02)


def test_a_topic_is_followed_from_a_tenth_on_with_the_survey_before() -> None:
    played = Played()
    played.survey(0, 9 * MIB)
    assert TOPIC not in played.guard.forecast
    played.survey(60, 69 * MIB)
    assert played.level().seconds_to_breach == pytest.approx(31, rel=0.02)


def test_a_close_look_tells_the_topics_own_quota() -> None:
    played = Played()
    played.survey(0, 20 * MIB)
    played.note(look(5, backlog(backlog_bytes=20 * MIB), quota_size_bytes=1_000 * MIB))
    played.survey(100, 30 * MIB)
    assert (played.level().limit, played.level().used) == (1_000 * MIB, 30 * MIB)
    played.note(look(105, backlog(backlog_bytes=20 * MIB)))
    played.survey(200, 90 * MIB)
    assert played.guard.forecast.of_topic(TOPIC) == []


def test_a_quota_that_changes_for_the_namespace_changes_for_its_topics() -> None:
    played = Played()
    own = f"{TOPIC}-own"
    for topic, limit in ((TOPIC, 100 * MIB), (own, 50 * MIB)):
        played.note(look(0, backlog(backlog_bytes=20 * MIB), topic=topic, quota_size_bytes=limit))
    played.guard.note_quotas(QuotaLook(NAMESPACE, S, 40 * MIB, None))
    for topic in (TOPIC, own):
        played.survey(100, 30 * MIB, topic)
    assert (played.level().limit, played.level(own).limit) == (40 * MIB, 50 * MIB)


def test_a_time_quota_of_a_close_look_goes_on_through_surveys() -> None:
    played = Played(None)
    played.guard.note_quotas(QuotaLook(NAMESPACE, 0, None, 3_600))
    played.note(look(0, backlog(), quota_age_s=3_600, oldest_age_s=60.0))
    played.survey(100, 5)
    assert (played.level().limit, played.level().used) == (3_600, 60)


def test_without_a_known_quota_there_is_no_forecast() -> None:
    played = Played(None)
    played.survey(0, 90 * MIB)
    assert played.guard.forecast.of_topic(TOPIC) == []
    played.guard.note_quotas(QuotaLook(NAMESPACE, 0, 100 * MIB, None))
    played.survey(60, 95 * MIB)
    assert played.level().used == 95 * MIB
    played.guard.note_quotas(QuotaLook(NAMESPACE, 0, None, None))
    played.survey(120, 97 * MIB)
    assert played.guard.forecast.of_topic(TOPIC) == []


def test_what_is_near_its_quota_is_looked_at_closely_the_soonest_first() -> None:
    played = Played()
    far, half, soon = (f"persistent://acme/orders/{name}" for name in ("far", "half", "soon"))
    for minute in range(3):
        played.survey(60 * minute, 12 * MIB, far)
        played.survey(60 * minute, 60 * MIB, half)
        played.survey(60 * minute, (15 + minute) * MIB, soon)
        for name in (far, half, soon):
            played.guard._checked_ns[name] = 0
    assert played.suspects(200, 121) == [half]  # 83 minutes are left of the other
    played.survey(180, 30 * MIB, soon)
    assert played.suspects(200, 181) == [soon, half]
    assert played.suspects(4, 181) == [soon]
    assert played.suspects(3, 181) == []


def test_the_largest_backlogs_are_looked_at_in_turn_for_quotas_of_their_own() -> None:
    played = Played(None)
    names = [f"persistent://acme/orders/{place}" for place in range(25)]
    for place, name in enumerate(names):
        played.survey(0, place * MIB, name)
    found = []
    for second in range(0, 60, 5):
        found += (wanted := played.suspects(40, second))
        for name in wanted:
            played.note(look(second, topic=name))
    assert found == names[:0:-1]  # one without a backlog needs no quota
    for name in names[1:]:
        played.survey(120, MIB, name)
    assert played.suspects(40, 180) == []
    assert len(played.suspects(40, 60 + CHECKED_NS / S)) == 2


def test_the_quotas_of_namespaces_are_asked_again_the_unknown_first() -> None:
    played = Played(None)
    for size, namespace in ((1, "a/small"), (3, "a/large"), (2, "a/middle")):
        played.survey(0, size, f"persistent://{namespace}/t")
    wanted = played.guard.quotas_wanted
    assert wanted(2, 0) == ["a/large", "a/middle"]
    for namespace in wanted(2, 0):
        played.guard.note_quotas(QuotaLook(namespace, 0, None, None))
    assert wanted(5, QUOTAS_NS - 1) == ["a/small"]
    assert wanted(5, QUOTAS_NS)[0] == "a/small"
    assert len(wanted(5, QUOTAS_NS)) == 3


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_guard, "NAMESPACES_MAX", 3)
    played = Played(None)
    for place in range(9):
        played.survey(0, 5, f"persistent://a/n{place}/t")
    assert len(played.guard.quotas_wanted(99, 0)) == 3
    played.note(look(0, quota_size_bytes=5, backlog_bytes=1))
    played.guard.forget(1, {})
    assert played.guard.forecast.of_topic(TOPIC) == []
    assert played.suspects(200, 1) == [name for name in played.topics if name != TOPIC]


def test_a_topic_that_is_gone_has_no_quota() -> None:
    played = Played()
    played.survey(0, 90 * MIB)
    played.guard.note_gone(TOPIC)
    assert played.guard.forecast.of_topic(TOPIC) == []


def test_a_size_that_is_not_known_changes_nothing() -> None:
    played = Played()
    played.survey(0, 90 * MIB)
    played.survey(60, None)
    assert played.level().used == 90 * MIB


def test_very_many_reached_quotas_of_a_tenant_take_no_close_look_of_another() -> None:
    """Fifty topics with a message and a quota of a byte were all that was looked at for quotas, so
    that nobody saw the age of what others have, and no alert told that their time quota is near."""
    played = Played(None)
    played.guard.note_quotas(QuotaLook("evil/n", 0, 1, None))
    for place in range(300):
        played.survey(0, 5, f"persistent://evil/n/t{place}")
    played.note(look(0, backlog(), quota_age_s=3_600, oldest_age_s=3_000.0))
    played.survey(100, MIB)
    played.guard._checked_ns.update(dict.fromkeys(played.topics, 0))
    suspects = played.suspects(200, 101)
    assert len(suspects) == 200 // quota_guard.NEAR_PART
    assert TOPIC in suspects


def test_very_many_large_backlogs_of_a_tenant_leave_close_looks_to_others() -> None:
    played = Played(None)
    for place in range(300):
        played.survey(0, 5 * MIB, f"persistent://evil/n/t{place}")
    played.survey(0, 1)
    assert TOPIC in played.suspects(200, 1)


def test_namespaces_that_are_gone_are_forgotten_although_they_were_asked_about() -> None:
    """The quotas of a deleted namespace were read every five minutes for ever, and ten thousand of
    them left no room for any new one."""
    played = Played(None)
    played.survey(0, 5, "persistent://evil/gone/t")
    for second in range(0, 7_200, 60):
        played.survey(second, 5)
        for namespace in played.guard.quotas_wanted(99, second * S):
            played.guard.note_quotas(QuotaLook(namespace, second * S, None, None))
        played.guard.forget((second - 3_600) * S, played.topics)
    assert played.guard.quotas_wanted(99, 10_000 * S) == [NAMESPACE]


def test_very_many_namespaces_of_a_tenant_leave_room_to_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quota_guard, "NAMESPACES_MAX", 3)
    played = Played(None)
    for place in range(9):
        played.survey(0, 5, f"persistent://evil/n{place}/t")
    for place in range(9):
        played.survey(0, 5, f"persistent://b/n{place}/t")
    assert len(played.guard.quotas_wanted(99, 0)) == 6
    played.guard.forget(1, {})
    played.survey(2, 5, "persistent://evil/later/t")
    assert played.guard.quotas_wanted(99, 0) == ["evil/later"]
