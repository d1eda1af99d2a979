"""The line in the log about lost entries that subscriptions skip."""

from __future__ import annotations

import pytest

from headgate.storage.lost_entries import LostEntriesLogger
from tests.unit.engine.harness import Rig


def test_a_topic_is_logged_once_and_again_after_more_damage(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig()
    rig.publish(9)
    monkeypatch.setattr(rig.log, "lost_ranges", lambda: [(1, 3), (6, 7)])
    lines = LostEntriesLogger()
    for _ in range(3):
        lines.skipped(rig.topic)
    first, last = rig.log.position(1), rig.log.position(6)
    assert caplog.messages == [
        f"{rig.topic.name}: 3 lost entries between {first} and {last} are skipped, because their "
        "loss was accepted"
    ]
    lines.damage_found(rig.log.number)
    lines.skipped(rig.topic)
    assert len(caplog.messages) == 2
