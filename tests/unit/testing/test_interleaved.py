"""Interleaved work stops before each operation and at a lock that is held."""

from __future__ import annotations

import pytest

from headgate.fs import FaultyFs, MemFs
from headgate.testing.interleaved import Interleaving


def test_work_stops_before_each_operation() -> None:
    steps = Interleaving()
    fs = FaultyFs(MemFs(), lambda _: steps.stop_here())
    fs.make_directory("/d")
    one, two = (steps.begin(lambda name=name: fs.create(f"/d/{name}")) for name in "ab")
    one.step()
    two.step()
    assert fs.list_directory("/d") == []
    two.step()
    assert two.is_done
    assert fs.list_directory("/d") == ["b"]
    one.finish()
    assert fs.list_directory("/d") == ["a", "b"]
    fs.create("/d/c")  # the test's own thread never stops


def test_the_error_of_the_work_is_raised() -> None:
    work = Interleaving().begin(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        work.finish()


def test_a_lock_has_one_holder() -> None:
    steps = Interleaving()
    lock, order = steps.lock(), list[str]()

    def hold(name: str) -> None:
        with lock:
            order.append(f"{name} in")
            steps.stop_here()
            order.append(f"{name} out")

    one, two = (steps.begin(lambda name=name: hold(name)) for name in "ab")
    one.step()
    two.step()
    two.step()
    assert lock.waits_count == 2
    one.step()
    two.finish()
    assert order == ["a in", "a out", "b in", "b out"]
