"""How long publishing waited in the last minute and hour, from what was seen once a second."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S
from headgate.observe.history import parked
from headgate.observe.history.parked import NOTHING, ParkedHistory, ParkedTrack
from tests.unit.engine.quota_rig import NO_QUOTAS, QuotaRig, size_quota

QUOTA = ParkCause.BACKLOG_QUOTA


class Play:
    """A topic whose producer waits now and then, looked at once a second."""

    def __init__(self) -> None:
        self.rig = QuotaRig()
        self.rig.engine.limits.hold_park_ns = 2 * NS_PER_HOUR
        self.rig.subscribe()
        self.history = ParkedHistory()

    def wait(self, seconds: int) -> None:
        self.rig.set_quotas(size_quota(0))
        self.rig.send(1)
        self.rest(seconds)
        self.rig.set_quotas(NO_QUOTAS)
        self.rig.commit()

    def rest(self, seconds: int) -> None:
        for _ in range(seconds):
            self.rig.advance(1_000)
            self.history.forget_gone()
            self.history.observe(self.rig.topic)

    def last_s(self, length_ns: int) -> float:
        spent_ns = self.history.last(self.rig.topic, length_ns)
        assert spent_ns[:QUOTA] == NOTHING[:QUOTA]
        return spent_ns[QUOTA] / NS_PER_S


def test_a_topic_on_which_nothing_waits_costs_nothing() -> None:
    play = Play()
    play.rest(10)
    assert len(play.history) == 0
    assert play.history.last(play.rig.topic, NS_PER_MINUTE) == NOTHING


def test_the_last_minute_and_the_last_hour() -> None:
    play = Play()
    play.rest(30)
    play.wait(20)
    assert play.last_s(NS_PER_MINUTE) == play.last_s(NS_PER_HOUR) == 20
    play.rest(50)
    assert play.last_s(NS_PER_MINUTE) == pytest.approx(10, abs=0.1)
    play.wait(5)
    assert play.last_s(NS_PER_MINUTE) == pytest.approx(10, abs=0.1)
    play.rest(1_800)
    assert play.last_s(NS_PER_MINUTE) == 0
    assert play.last_s(NS_PER_HOUR) == pytest.approx(25, abs=0.1)
    play.rest(1_800)
    assert play.last_s(NS_PER_HOUR) == pytest.approx(0, abs=6)
    assert play.rig.topic.publishing.parking is not None


def test_what_waits_all_the_time_waits_all_of_the_hour() -> None:
    play = Play()
    play.wait(4_000)
    assert play.last_s(NS_PER_MINUTE) == pytest.approx(60, abs=0.01)
    assert play.last_s(NS_PER_HOUR) == pytest.approx(3_600, abs=0.01)
    (track,) = play.history._tracks.values()
    assert len(track._points) < 64


def test_before_the_first_look_all_of_it_was_lately() -> None:
    play = Play()
    play.rig.set_quotas(size_quota(0))
    play.rig.send(1)
    play.rig.advance(700)
    assert play.last_s(NS_PER_MINUTE) == 0.7
    assert play.last_s(NS_PER_S // 2) == 0.5


def test_what_is_gone_is_forgotten() -> None:
    play = Play()
    play.wait(2)
    assert len(play.history) == 1
    play.rig.topic.fence()
    play.rig.engine.unload_topic(play.rig.topic)
    play.history.forget_gone()
    assert len(play.history) == 0


def test_a_round_looks_at_a_part_of_the_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look at 100,000 topics that ever waited held the loop for 10 ms."""
    monkeypatch.setattr(parked, "CHECKED_TOPICS_MAX", 2)
    plays = [Play() for _ in range(5)]
    history = plays[0].history
    for play in plays:
        play.history = history
        play.wait(2)
    for play in plays:
        play.rig.topic.fence()
        play.rig.engine.unload_topic(play.rig.topic)
    history.forget_gone()  # what is left of the round before
    before = len(history)
    counts = [before]
    while len(history):
        history.forget_gone()
        counts.append(len(history))
    assert before >= 3
    assert max(was - now for was, now in pairwise(counts)) <= 2


def test_coarse_points_lose_resolution_and_no_amounts() -> None:
    track = ParkedTrack(0, NOTHING)
    spent = 0
    for second in range(1, 3_000):
        spent += second % 3 * NS_PER_S // 4
        track.add(second * NS_PER_S, (spent, *NOTHING[1:]))
    now_ns = 3_000 * NS_PER_S
    total, *_ = track.since(-NS_PER_S, now_ns, (spent, *NOTHING[1:]))
    assert total == spent
    for length_s in (60, 600, 2_000):
        found, *_ = track.since(now_ns - length_s * NS_PER_S, now_ns, (spent, *NOTHING[1:]))
        assert found == pytest.approx(length_s * NS_PER_S / 4, rel=0.04)
