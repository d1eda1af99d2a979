"""What a client sends does not decide how long the audit log is."""

from __future__ import annotations

from headgate.base.units import NS_PER_S
from headgate.broker.audit_limit import (
    OTHERS,
    SOURCE_LINES,
    SOURCES_MAX,
    WINDOW_LINES,
    WINDOW_NS,
    LineLimit,
    Source,
)


def source(number: int) -> Source:
    return Source("role", f"10.0.0.{number}", "topic.produce", "refused")


def test_a_client_that_is_refused_a_million_times_has_few_lines_and_a_count() -> None:
    limit, one = LineLimit(), source(1)
    written = sum(limit.allows(one, NS_PER_S) for _ in range(1_000_000))
    assert written == SOURCE_LINES
    assert limit.has_left_out
    assert limit.end_window(WINDOW_NS) == {one: 1_000_000 - SOURCE_LINES}
    assert not limit.has_left_out


def test_another_client_still_has_its_lines() -> None:
    limit = LineLimit()
    for _ in range(1_000):
        limit.allows(source(1), 0)
    assert limit.allows(source(2), 0)


def test_many_sources_share_a_bound_and_their_counts_take_bounded_memory() -> None:
    limit = LineLimit()
    written = sum(limit.allows(source(number), 0) for number in range(10_000))
    assert written == WINDOW_LINES
    left_out = limit.end_window(WINDOW_NS)
    assert len(left_out) == SOURCES_MAX + 1
    assert sum(left_out.values()) == 10_000 - WINDOW_LINES
    assert left_out[OTHERS] == 10_000 - WINDOW_LINES - SOURCES_MAX


def test_a_new_window_has_new_lines_and_loses_no_count() -> None:
    limit, one = LineLimit(), source(1)
    for _ in range(SOURCE_LINES + 3):
        limit.allows(one, 0)
    assert limit.allows(one, WINDOW_NS)
    assert limit.end_window(WINDOW_NS) == {one: 3}
