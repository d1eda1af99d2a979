"""Plans of backlog reads, and what the log reads by them."""

from __future__ import annotations

import pytest

from headgate.base.errors import InvariantError
from headgate.fs import MemFs
from tests.unit.ledger.support import append, open_log


def test_plans_are_bounded_by_count_bytes_and_extent() -> None:
    log = open_log(MemFs())
    topic = append(log, 1, *[b"%03d" % at * 30 for at in range(60)])
    assert log.locate(topic, 0, 5, 1 << 30).count == 5
    assert log.locate(topic, 0, 99, 300).count == 3
    assert log.locate(topic, 7, 99, 0).count == 1
    assert log.locate(topic, 7, 0, 0).count == 1
    plan = log.locate(topic, 10, 1000, 1 << 30)
    assert plan.first_ordinal == 10
    assert 1024 / 140 <= plan.count <= 1024 / 130 + 1
    assert len(log.read(plan)) == plan.count
    for bad in (-1, 60, 61):
        with pytest.raises(InvariantError):
            log.locate(topic, bad, 1, 1)


def test_one_extent_serves_other_topics_too() -> None:
    log = open_log(MemFs())
    for at in range(10):
        append(log, 1 + at % 3, b"%d" % at)
    plan = log.locate(log.topic(1), 0, 2, 1000)
    plan.wanted_topics |= {1, 3}
    assert log.read(plan) == [(1, 0, b"0"), (1, 1, b"3"), (3, 0, b"2"), (3, 1, b"5")]


def test_undurable_entries_are_not_served() -> None:
    log = open_log(MemFs())
    append(log, 1, b"a")
    append(log, 2, b"b")
    log.stage_entry(log.topic(2), 1, 1, 0, b"not yet")
    batch = log.seal_batch()
    assert batch is not None
    log.write_batch(batch)
    plan = log.locate(log.topic(1), 0, 1, 1)
    plan.wanted_topics.add(2)
    assert log.read(plan) == [(1, 0, b"a"), (2, 0, b"b")]
