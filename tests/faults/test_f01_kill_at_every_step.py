"""F1: the process is killed before each operation on the disk; what it wrote stays there.

The system still holds what was written and not synced, so a start after a kill finds more than one
after a power cut. What it shows must survive a power cut right behind it. The same with real
processes under load is ``tests/service/test_kill_nine.py``.
"""

from __future__ import annotations

import pytest

from headgate.fs import FaultyFs, MemFs
from tests.sim.test_ledger_power_cuts import (
    TURNS,
    Driver,
    Model,
    crash_and_check,
    cut_at,
    operations_of,
    run,
)
from tests.sim.test_log_and_metadata_cuts import Machine, boundaries, play


def killed(fs: MemFs) -> MemFs:
    """The disk after its process was killed: all files stay as they are, the locks go."""
    fs._locks.clear()
    return fs


@pytest.mark.parametrize("seed", [1, 2])
def test_a_kill_at_each_operation_of_the_log(seed: int) -> None:
    total = operations_of(seed, TURNS)
    assert total > 90
    for index in range(total + 1):
        driver = Driver(cut_at(index), Model(), seed)
        run(driver, TURNS)
        assert isinstance(driver.fs.inner, MemFs)
        after = Driver(FaultyFs(killed(driver.fs.inner)), driver.model, seed + 77)
        after.confirmed = driver.confirmed
        after.open()
        after.check()
        for at in range(3 * (index % 2)):
            after.turn(at)
        crash_and_check(after, None)


def test_a_kill_at_each_operation_of_a_whole_broker() -> None:
    for index in range(len(boundaries()[0])):

        def prepare(machine: Machine, index: int = index) -> None:
            machine.cut_operation = index
            world, crash = machine.world, machine.crash

            def kill(coin: int) -> None:
                fs = world.fs
                fs.crash_clone = lambda seed=None: killed(fs)  # type: ignore[method-assign]
                crash(coin)
                del fs.crash_clone  # type: ignore[method-assign]

            machine.crash = kill  # type: ignore[method-assign]

        play(index, prepare)
