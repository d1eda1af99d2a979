"""Topics come when they are due, in the order of their times."""

from __future__ import annotations

from typing import Any, cast

from headgate.broker.sweeps.due_topics import DueTopics


def test_topics_come_when_they_are_due() -> None:
    due = DueTopics()
    a, b, c = cast(Any, "a"), cast(Any, "b"), cast(Any, "c")
    due.set(a, 30)
    due.set(b, 10)
    due.set(c, 20)
    assert due.due_ms(a) == 30
    assert list(due.take(9)) == []
    assert list(due.take(20)) == [b, c]
    assert due.due_ms(b) is None
    due.set(a, 5)  # earlier than before
    due.set(b, 7)
    due.set(b, 40)  # later than before
    due.set(c, 6)
    due.discard(c)
    assert list(due.take(39)) == [a]
    assert list(due.take(40)) == [b]


def test_a_topic_that_is_put_back_waits_for_its_new_time() -> None:
    due = DueTopics()
    due.set(cast(Any, "a"), 1)
    taken = []
    for topic in due.take(5):
        taken.append(topic)
        due.set(topic, 6)
    assert taken == ["a"]
