"""The strip of a subscription's last hour."""

from __future__ import annotations

from headgate.base.sliced import at_once
from headgate.explain.timeline import MINUTES, PARTS_PER_YIELD, timeline
from headgate.flow.account.account import Cell
from tests.unit.explain.made_past import past

HELD = [Cell.TOPIC_MESSAGES_HUNGRY] * 120
SLOW = [Cell.NO_PERMITS] * 60


def test_each_minute_is_judged_by_itself() -> None:
    found = at_once(timeline([past(HELD + SLOW)]))
    assert len(found.verdicts) == len(found.backlog) == len(found.oldest_age_s) == MINUTES
    assert found.verdicts[-4:] == [None, "THROTTLED_TOPIC", "THROTTLED_TOPIC", "CONSUMER"]
    assert found.backlog[-4:] == [None, 6_000, 12_000, 18_000]
    assert found.oldest_age_s[-3:] == [60.0, 120.0, 180.0]


def test_a_minute_without_an_old_message_blames_nobody() -> None:
    found = at_once(timeline([past([Cell.DISPATCHING] * 60, acked_per_s=100)]))
    assert found.verdicts[-1] == "NONE"
    assert found.backlog[-1] == 0


def test_between_two_distant_points_things_went_evenly() -> None:
    whole = past(HELD)
    coarse = type(whole)([whole.hour[0], whole.hour[-1]], whole.last, whole.seen_ns, whole.phase)
    found = at_once(timeline([coarse]))
    assert found.verdicts[-3:] == [None, "THROTTLED_TOPIC", "THROTTLED_TOPIC"]
    assert found.backlog[-2:] == [6_000, 12_000]


def test_partitions_are_summed_and_one_that_is_younger_is_left_out_before() -> None:
    found = at_once(timeline([past(HELD), past(SLOW, begin_s=60)]))
    assert found.backlog[-2:] == [6_000, 18_000]


def test_a_minute_of_many_partitions_has_pauses() -> None:
    """Each of 60 minutes of 4,096 partitions held the loop for 90 ms."""
    count, pauses, work = 40, 0, timeline([past(HELD)] * 40)
    for _ in work:
        pauses += 1
    assert pauses >= MINUTES * count // PARTS_PER_YIELD
