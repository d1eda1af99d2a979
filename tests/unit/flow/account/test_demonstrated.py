"""What an account says of the consumers."""

from __future__ import annotations

import pytest

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.account.account import CELL_COUNT, Cell, State
from headgate.flow.account.demonstrated import (
    CONSUMER_STATES,
    Interval,
    demonstrated_ack_per_s,
    hungry_share,
    stopped_by,
    stuck_share,
)
from headgate.flow.account.verdict import YOUNG_NS
from headgate.flow.limits.rate_limit import Level


def cells(**seconds: float) -> list[int]:
    """Nanoseconds per cell."""
    found = [0] * CELL_COUNT
    for name, length_s in seconds.items():
        found[Cell[name.upper()]] = round(length_s * NS_PER_S)
    return found


def interval(acked: int, *, oldest_s: float = 10, **seconds: float) -> Interval:
    account = cells(**seconds)
    return Interval(sum(account), account, acked, round(oldest_s * NS_PER_S))


def test_a_consumer_that_had_enough_proves_its_rate() -> None:
    assert demonstrated_ack_per_s([interval(500, no_permits=9, dispatching=1)]) == 50
    assert demonstrated_ack_per_s([interval(500, awaiting_ack=10)]) == 50


@pytest.mark.parametrize(
    "held_by",
    ["caught_up", "no_consumer", "transition", "topic_messages_hungry", "broker_bytes_busy"],
)
def test_time_that_others_held_proves_nothing(held_by: str) -> None:
    assert demonstrated_ack_per_s([interval(500, no_permits=9.5, **{held_by: 0.5})]) == 50
    assert demonstrated_ack_per_s([interval(500, no_permits=9.4, **{held_by: 0.6})]) is None


def test_where_all_is_young_nothing_is_demonstrated() -> None:
    young_s = (YOUNG_NS - NS_PER_MS) / NS_PER_S
    assert demonstrated_ack_per_s([interval(500, no_permits=10, oldest_s=young_s)]) is None
    old = interval(500, no_permits=10, oldest_s=YOUNG_NS / NS_PER_S)
    assert demonstrated_ack_per_s([old]) == 50
    assert demonstrated_ack_per_s([old], young_ns=YOUNG_NS + 1) is None


def test_a_stretch_without_time_proves_nothing() -> None:
    assert demonstrated_ack_per_s([Interval(0, cells(), 500, 10 * NS_PER_S)]) is None
    assert demonstrated_ack_per_s([]) is None


def test_one_fluke_in_a_hundred_does_not_count() -> None:
    usual = [interval(100, no_permits=10) for _ in range(99)]
    assert demonstrated_ack_per_s([*usual, interval(90_000, no_permits=10)]) == 10
    assert (
        demonstrated_ack_per_s([interval(100, no_permits=10), interval(200, no_permits=10)]) == 20
    )


def test_the_consumer_state_that_took_most_time_stopped_it() -> None:
    assert stopped_by(cells(no_permits=3, awaiting_ack=4, caught_up=90)) == "awaiting_ack"
    assert stopped_by(cells(caught_up=5, topic_bytes_busy=5)) == ""
    assert {
        State.AWAITING_ACK,
        State.UNACKED_LIMIT,
        State.NO_PERMITS,
        State.SOCKET_FULL,
        State.KEY_BLOCKED,
    } == CONSUMER_STATES


def test_hungry_time_is_counted_for_one_limiter() -> None:
    account = cells(topic_messages_hungry=2, topic_bytes_hungry=1, topic_bytes_busy=1, storage=4)
    assert hungry_share(account, Level.TOPIC) == 3 / 8
    assert hungry_share(account, Level.BROKER) == 0
    assert hungry_share(account, None) is None
    assert hungry_share(cells(), Level.TOPIC) is None


def test_a_stuck_dispatcher_shows_nothing_about_the_consumers() -> None:
    assert demonstrated_ack_per_s([interval(0, stuck=10)]) is None
    assert stuck_share(cells(stuck=3, dispatching=1)) == 0.75
    assert stuck_share(cells()) == 0.0
