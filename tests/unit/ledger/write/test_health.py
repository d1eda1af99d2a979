"""The health of a log: each state, each event."""

from __future__ import annotations

import pytest

from headgate.base.errors import StorageError
from headgate.ledger import LogFailedError, LogFullError
from headgate.ledger.write.health import Condition, LogHealth


def test_a_full_log_opens_again_when_there_is_room() -> None:
    health, changes = LogHealth(), 0

    def changed() -> None:
        nonlocal changes
        changes += 1

    health.on_change(changed)
    health.room_found()
    assert (health.condition, health.is_open, changes) == (Condition.OPEN, True, 0)
    health.disk_full()
    health.disk_full()
    assert (health.condition, health.is_full, changes) == (Condition.FULL, True, 1)
    with pytest.raises(LogFullError, match="until there is room"):
        health.check_open()
    health.room_found()
    assert (health.condition, changes) == (Condition.OPEN, 2)
    health.check_open()


@pytest.mark.parametrize("is_full", [False, True])
def test_a_failure_is_final(is_full: bool) -> None:
    health = LogHealth()
    if is_full:
        health.disk_full()
    health.fail(StorageError("broken", retryable=False))
    health.fail(LogFailedError("broken again"))
    health.room_found()
    health.disk_full()
    assert health.condition is Condition.FAILED
    assert not health.is_open
    assert not health.is_full
    with pytest.raises(LogFailedError, match=r"^broken$"):
        health.check_open()
