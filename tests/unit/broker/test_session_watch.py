"""Sessions are looked at when they are due, in steps."""

from __future__ import annotations

from headgate.broker.session_watch import SESSIONS_PER_UNIT, SessionWatch


class FakeSession:
    def __init__(self, due_s: float) -> None:
        self.due_s = due_s
        self.looks: list[float] = []

    def look(self, now_s: float) -> int:
        self.looks.append(now_s)
        self.due_s += 100
        return 7


def test_those_that_are_due_are_looked_at() -> None:
    watch = SessionWatch()
    sessions = [FakeSession(due_s) for due_s in (10.0, 20.0, 30.0)]
    for session in sessions:
        watch.add(session)
        watch.add(session)
    assert len(watch) == 3
    assert list(watch.steps(20.0)) == [7, 7]
    assert [session.looks for session in sessions] == [[20.0], [20.0], []]
    assert list(watch.steps(20.0)) == []


def test_one_that_ends_meanwhile_is_not_looked_at() -> None:
    watch = SessionWatch()
    first, second = FakeSession(1.0), FakeSession(1.0)
    watch.add(first)
    watch.add(second)
    steps = watch.steps(5.0)
    assert next(steps) == 7
    watch.discard(second)
    watch.discard(second)
    assert list(steps) == []
    assert second.looks == []


def test_many_that_are_not_due_cost_little() -> None:
    watch = SessionWatch()
    for _ in range(10 * SESSIONS_PER_UNIT):
        watch.add(FakeSession(9.0))
    assert list(watch.steps(5.0)) == [1] * 10
