"""The plant around the laws: it conserves bytes, and limits and holds are as the broker's."""

from __future__ import annotations

import pytest

from headgate.flow.adaptive.cycle import AdaptiveSettings, Law, MemoryRule, PublishLimit
from headgate.testing.adaptive_plant import STEPS_PER_S, Plant, PlantTopic, Profile


def flat(rate: float) -> Profile:
    return Profile([(0.0, rate)])


def test_profiles_change_in_steps() -> None:
    profile = Profile([(0, 5), (10, 7), (20, 6)])
    assert [profile.at(second) for second in (0, 9.9, 10, 19, 20, 99)] == [5, 5, 7, 7, 6, 6]
    assert profile.changes_s == [10, 20]
    assert profile.largest == 7
    later = profile.then(15, 1)
    assert [later.at(second) for second in (0, 14, 15, 99)] == [5, 7, 1, 1]


def test_bytes_are_neither_made_nor_lost() -> None:
    topic = PlantTopic(flat(3_000), flat(2_000), acknowledges_every_s=0.5)
    plant = Plant([topic])
    plant.run(10)
    assert topic.accepted == pytest.approx(30_000)
    assert topic.backlog == pytest.approx(topic.accepted - topic.done)
    assert topic.done == pytest.approx(20_000, rel=0.06)
    assert topic.disturbances == 1


def test_no_second_carries_more_than_its_limit() -> None:
    topic = PlantTopic(flat(9_000), flat(9_000))
    topic.limit = PublishLimit(2, 3_000)
    published = [topic.step(step / STEPS_PER_S) for step in range(10 * STEPS_PER_S)]
    for begin in range(len(published) - STEPS_PER_S):
        assert sum(published[begin : begin + STEPS_PER_S]) <= 2_000 + 1e-6
    assert sum(published) == pytest.approx(20_000)
    topic.limit = PublishLimit(None, 500)
    assert sum(topic.step(10 + step / STEPS_PER_S) for step in range(STEPS_PER_S)) <= 500


def test_a_lower_limit_leaves_no_hole() -> None:
    """Rule 3.3: what went under the higher one counts in proportion."""
    topic = PlantTopic(flat(300), flat(9_000))
    for second, limit in enumerate((300, 300, 225, 169, 300)):
        topic.limit = PublishLimit(None, limit)
        published = [topic.step(second + step / STEPS_PER_S) for step in range(STEPS_PER_S)]
        assert sum(published) == pytest.approx(limit, rel=0.01)


def test_a_hold_stops_at_the_quota_and_lets_go_at_95_percent() -> None:
    topic = PlantTopic(flat(1_000), Profile([(0, 0), (20, 500)]), size_limit=10_000)
    plant = Plant([topic], AdaptiveSettings(observe_only=True))
    plant.run(19)
    assert topic.backlog == 10_000
    assert topic.held_s == pytest.approx(9, abs=0.2)
    plant.run(10)
    assert 9_400 < topic.backlog <= 10_000
    assert topic.offered_bytes > 0
    assert topic.wasted_bytes == 0


def test_ages_are_of_the_oldest_that_is_not_acknowledged() -> None:
    topic = PlantTopic(flat(1_000), Profile([(0, 0), (5, 2_000)]), age_limit_ms=10_000)
    Plant([topic]).run(20)
    ages = {round(look.second, 2): look.age_ms for look in topic.looks}
    assert ages[4.0] == 4_000
    assert ages[7.5] == pytest.approx(2_500, abs=100)
    assert ages[15.0] <= 100
    assert topic.use(topic.looks[79]) == pytest.approx(0.4)


def test_producers_that_wait_want_no_more_than_their_pent_up_demand() -> None:
    topic = PlantTopic(flat(1_000), flat(0), size_limit=1_000, pent_up_s=3)
    Plant([topic], AdaptiveSettings(observe_only=True)).run(30)
    assert topic.parked == pytest.approx(3_000)
    assert topic.held_bytes >= 3_000


def test_a_slow_disk_takes_memory_from_who_publishes() -> None:
    small, large = PlantTopic(flat(1_000), flat(1e9)), PlantTopic(flat(9_000), flat(1e9))
    plant = Plant([small, large], disk=flat(5_000), memory_base=flat(100.0))
    plant.run(10)
    assert small.held_bytes * 9 == pytest.approx(large.held_bytes, rel=0.01)
    assert plant.memory_max == pytest.approx(100 + 50_000, rel=0.01)


@pytest.mark.parametrize("law", Law)
def test_observe_only_changes_nothing(law: Law) -> None:
    """Rule 5.2."""
    topics = [
        PlantTopic(flat(4e6), Profile([(0, 2e6), (9, 0)]), size_limit=24_000_000, holds=False)
        for _ in range(2)
    ]
    Plant([topics[0]], AdaptiveSettings(law=law, observe_only=True)).run(30)
    assert topics[0].decisions
    assert all(decision.observe_only for _, decision in topics[0].decisions)
    for step in range(30 * STEPS_PER_S):
        topics[1].step((step + 1) / STEPS_PER_S)
    assert topics[0].accepted == topics[1].accepted
    assert topics[0].waited_s == 0


def test_memory_that_nobody_takes_slows_everybody_for_a_minute() -> None:
    """Rule 5.3: then it is given up, and producers have their rate again."""
    topics = [PlantTopic(flat(rate), flat(9e6)) for rate in (20_000, 500_000)]
    plant = Plant(topics, memory_base=Profile([(0, 0), (10, 0.95 * (1 << 30))]))
    plant.run(60)
    for topic in topics:
        published = sum(look.published for look in topic.looks[-STEPS_PER_S:]) / STEPS_PER_S
        assert published == pytest.approx(0.1 * topic.demand.at(0), rel=0.05)
    plant.run(60)
    (begun_s, begun), (given_up_s, given_up) = plant.turned
    assert (begun, given_up) == (MemoryRule.EVERYBODY, MemoryRule.NO_EFFECT)
    assert begun_s == pytest.approx(13, abs=1)
    assert given_up_s == pytest.approx(begun_s + 60, abs=1)
    assert all(topic.limit is None and topic.activations == 1 for topic in topics)


def test_many_who_take_a_little_each_are_slowed_together_and_that_helps() -> None:
    """Rule 5.3: none of them grows enough to be named."""
    topics = [PlantTopic(flat(5_000), flat(9e6), pent_up_s=0.5) for _ in range(100)]
    slow = Profile([(0, 1e6), (10, 0.2e6), (50, 1e6)])
    plant = Plant(topics, disk=slow, memory_limit=4_000_000)
    plant.run(80)
    assert [rule for _, rule in plant.turned][:1] == [MemoryRule.EVERYBODY]
    assert MemoryRule.NO_EFFECT not in [rule for _, rule in plant.turned]
    # Three cycles and four steps beyond the high watermark, of which it would be three times.
    assert plant.memory_max < 0.85 * plant.memory_limit + 8 * 0.3e6
    assert plant.memory_shares[-1] < 0.1
    assert all(topic.limit is None for topic in topics)
