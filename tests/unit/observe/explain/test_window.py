"""The points of a history between two instants."""

from __future__ import annotations

import pytest

from headgate.base.sliced import at_once
from headgate.base.units import NS_PER_MINUTE
from headgate.explain.window import window
from headgate.observe.explain.window import part_of, parts_of
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.observe.explain.asking import S


def test_the_window_is_as_long_as_is_known() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t", 10))
    broker.run(20)
    seen = window([part_of(broker.observer.history, subscription)], NS_PER_MINUTE)  # type: ignore[arg-type]
    assert 18 * S <= seen.length_ns <= 20 * S
    assert seen.gained("appended") == pytest.approx(10 * seen.length_ns / S, abs=11)
    assert seen.total_start("backlog") + seen.gained("appended") == seen.total_end("backlog")
    assert seen.age_ns_max == pytest.approx(20 * S, abs=S)


def test_a_window_sums_over_the_parts() -> None:
    broker = VirtualBroker()
    topics = [broker.topic(f"t{i}", 10 * (i + 1)) for i in range(2)]
    found = [broker.subscription(topic) for topic in topics]
    broker.run(20)
    parts = at_once(parts_of(broker.observer.history, found))
    seen = window(parts, 10 * S)
    assert 5 * S <= seen.length_ns <= 10 * S  # the history is coarser than a second by now
    assert seen.gained("appended") == 30 * seen.length_ns / S
    assert seen.per_second("appended") == 30


def test_a_removed_part_is_left_out_unless_all_are() -> None:
    broker = VirtualBroker()
    topics = [broker.topic(f"t{i}") for i in range(2)]
    found = [broker.subscription(topic) for topic in topics]
    topics[0].remove_subscription("s")
    (part,) = at_once(parts_of(broker.observer.history, found))
    assert part.subscription is found[1]
    topics[1].remove_subscription("s")
    assert len(at_once(parts_of(broker.observer.history, found))) == 1
