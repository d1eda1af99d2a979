"""The situations match the demo's promises, and each has one clear cause."""

from __future__ import annotations

from collections import Counter

import pytest

from headgate.demo.scenes import (
    ADAPTIVE,
    ENTRY_BYTES,
    MAIN,
    SCENES,
    SETTINGS,
    WIDE,
    Scene,
    Subject,
    clusters,
    subjects,
)
from headgate.flow.account.verdict import THROTTLED, Verdict
from headgate.flow.limits.rate_limit import Level
from headgate.policy.settings import SETTINGS as BROKER_SETTINGS


def test_the_scenes_have_every_kind_of_backlog() -> None:
    assert Counter(scene.verdict for scene in SCENES) == {
        Verdict.CONSUMER: 3,
        Verdict.THROTTLED_SUBSCRIPTION: 1,
        Verdict.THROTTLED_TOPIC: 2,
        Verdict.THROTTLED_BROKER: 1,
        Verdict.NONE: 2,
        Verdict.NO_CONSUMER: 1,
    }
    assert len({scene.name for scene in SCENES}) == len(SCENES)


def test_a_broker_wide_limit_has_its_own_broker() -> None:
    assert clusters() == [MAIN, WIDE, ADAPTIVE]
    wide = [scene for scene in SCENES if scene.cluster == WIDE]
    assert [scene.level for scene in wide] == [Level.BROKER]


def _published_per_s(scene: Scene) -> int:
    """What comes to a limit: every subscription of every topic wants all that is published."""
    return scene.publish_per_s * len(scene.topics) * len(scene.subscriptions)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_each_cause_is_clear(scene: Scene) -> None:
    """So far from the next cause that a machine busy with other things changes nothing."""
    if scene.verdict in THROTTLED:
        assert scene.level == THROTTLED.index(scene.verdict)
        assert scene.consume_per_s is None
        if not scene.relative:
            assert scene.limit_per_s <= 0.8 * _published_per_s(scene)
    elif scene.verdict is Verdict.CONSUMER:
        assert scene.consume_per_s is not None
        assert scene.consume_per_s < 0.7 * scene.publish_per_s
        if scene.level is not None:
            assert 0.8 * scene.limit_per_s >= scene.consume_per_s
    else:
        assert scene.level is None
        assert scene.has_consumer is (scene.verdict is Verdict.NONE)


@pytest.mark.parametrize("seconds", [10, 60, 3_600])
def test_a_relative_limit_has_a_backlog_until_the_end(seconds: float) -> None:
    """Far more than what the limit lets through beyond what is published, with time for Spark."""
    (scene,) = (each for each in SCENES if each.relative)
    assert len(scene.topics) == len(scene.subscriptions) == 1
    assert scene.old_backlog(seconds) > 1.4 * scene.limit_per_s * (seconds + 30)
    assert scene.old_backlog(seconds, 100) == scene.old_backlog(seconds) + 100 * scene.limit_per_s
    assert all(each.old_backlog(seconds, 100) == 0 for each in SCENES if not each.relative)
    assert scene.rates_per_s == (100, 300, 100)
    assert scene.phase_s(seconds) * 3 == pytest.approx(seconds)
    # At least half of a queue that holds more than two seconds' deliveries is free at every rate.
    assert scene.queue_size > 2 * (max(scene.rates_per_s) + scene.limit_per_s)


def test_a_slowed_producer_and_its_neighbour_have_their_own_broker() -> None:
    slowed, other = (scene for scene in SCENES if scene.cluster == ADAPTIVE)
    assert set(SETTINGS) == {ADAPTIVE}
    assert SETTINGS[ADAPTIVE].keys() <= {*BROKER_SETTINGS}
    assert (slowed.has_quota, other.has_quota) == (True, False)
    # It waits for its receipts, for no longer than a client does, and the other never does.
    assert slowed.pending_max is not None
    assert slowed.consume_per_s is not None
    assert slowed.pending_max <= 2 * slowed.consume_per_s
    assert other.pending_max is None


@pytest.mark.parametrize(("seconds", "quota_s"), [(10, 20), (30, 30), (60, 60), (3_600, 60)])
def test_a_quota_fills_within_the_demo(seconds: float, quota_s: int) -> None:
    (slowed,) = (scene for scene in SCENES if scene.has_quota)
    assert slowed.quota_bytes(seconds) == quota_s * 100 * ENTRY_BYTES


def test_subjects_have_the_order_of_the_scenes() -> None:
    found = list(subjects())
    assert [subject.text for subject, _ in found] == [
        "orders / billing",
        "payments / audit",
        "clicks / search",
        "clicks / reports",
        "sensors-a / store",
        "sensors-b / store",
        "sensors-c / store",
        "metering / invoices",
        "logins / alerts",
        "returns / archive",
        "parcels / tracking",
        "videos / encoding",
        "chats / inbox",
    ]
    assert found[0][0] == Subject(MAIN, "persistent://public/default/orders", "billing")
    assert {scene for _, scene in found} == set(SCENES)
