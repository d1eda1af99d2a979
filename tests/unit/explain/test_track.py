"""The last hour of a subscription: what is kept, what is thinned out."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headgate.base.units import NS_PER_MINUTE
from headgate.explain.downsampling import FEW_POINTS
from headgate.observe.history.tracks import Track
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.explain.made_points import START, S, point

GRIDS_S = ((10, 1), (65, 5), (600, 60), (3_900, 300))
"""Up to which age points stand how far apart."""


# -- what is kept -------------------------------------------------------------------------------


def busy_track(seconds: int) -> Track:
    track = Track(point(0, appended=0))
    for second in range(1, seconds + 1):
        track.add(point(second, appended=7 * second, sent=5 * second))
    return track


def test_points_come_back_as_they_were() -> None:
    first = point(0, appended=9, done=4, age_s=0.3, sent=6, limits=-(2**62), in_flight=2)
    track = Track(first)
    second = point(1, appended=2**50, done=1, age_s=5, redelivered=3, sent_bytes=10**15)
    track.add(second)
    assert track.since(0) == [first, second]
    assert track.since(second.at_ns) == [second]


def test_it_becomes_coarser_with_age_and_forgets_after_an_hour() -> None:
    seconds = 2 * 3_600
    track = busy_track(seconds)
    points = track.since(0)
    end_ns = points[-1].at_ns
    assert end_ns == START + seconds * S
    ages_s = [(end_ns - p.at_ns) / S for p in points]
    assert max(ages_s) <= 3_600 + 5 * 60
    assert len(points) < 60
    for older_s, younger_s in pairwise(ages_s):
        grid_s = next(grid for until, grid in GRIDS_S if older_s < until)
        assert older_s - younger_s <= grid_s
    for before, after in pairwise(points):
        assert (after.at_ns - before.at_ns) * 7 == (after.appended - before.appended) * S


def test_with_few_points_the_newest_the_oldest_and_all_ages_stay() -> None:
    track = busy_track(600)
    oldest = track.since(0)[0]
    for second in range(601, 900):
        newest = point(second, appended=7 * second, age_s=9 if second == 777 else 0)
        track.add(newest, keeps_few=True)
        assert [p.at_ns for p in track.since(newest.at_ns)] == [newest.at_ns]
    assert len(track) <= FEW_POINTS
    assert track.since(0)[0] == oldest
    assert max(p.age_ns_max for p in track.since(0)) == 9 * S


def test_with_few_points_it_still_forgets_after_an_hour() -> None:
    track = Track(point(0))
    for second in range(1, 4_300):
        track.add(point(second, appended=second), keeps_few=True)
    assert len(track) <= FEW_POINTS
    assert track.since(0)[0].at_ns >= START + (4_299 - 3_600 - 5 * 60) * S


def test_an_age_between_two_kept_points_is_not_lost() -> None:
    track = Track(point(0))
    for second in range(1, 200):
        track.add(point(second, appended=second, age_s=9 if second == 47 else 0))
    points = track.since(0)
    assert max(p.age_ns_max for p in points) == 9 * S
    assert max(p.age_ns for p in points) <= 9 * S


def test_nothing_is_kept_while_nothing_happens() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t"))
    broker.publish(subscription.topic, 2)
    broker.run(1)
    track = broker.observer.history.track(subscription)
    kept = len(track.since(0))
    broker.run(600)
    assert broker.observer.history.track(subscription) is track
    assert len(track.since(0)) == kept
    assert track.seen_ns == broker.engine.now_ns
    # The time in which it stood still is made up when somebody asks for it.
    (made_up,) = track.since(broker.engine.now_ns - NS_PER_MINUTE)
    assert made_up.at_ns == broker.engine.now_ns - NS_PER_MINUTE
    assert made_up.backlog == 2
    assert made_up.age_ns == pytest.approx(541 * S, abs=S)
    assert sum(made_up.cells_ns) == made_up.at_ns - subscription.account.opened_ns


def test_after_a_rest_the_end_of_the_rest_is_kept() -> None:
    """Else the next change would seem to have taken all of it."""
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic)
    broker.publish(topic, 1)
    broker.run(30)
    rested_ns = broker.engine.now_ns
    broker.run(1)
    broker.publish(topic, 5)
    broker.run(1)
    track = broker.observer.history.track(subscription)
    last, now = track.since(rested_ns)[-2:]
    assert (last.backlog, now.backlog) == (1, 6)
    assert now.at_ns - last.at_ns <= S


def test_the_future_is_not_asked_for() -> None:
    track = Track(point(5))
    (last,) = track.since(START + 100 * S)
    assert last.at_ns == START + 5 * S


# -- the rounds ---------------------------------------------------------------------------------
