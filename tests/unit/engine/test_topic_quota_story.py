"""Anything that may happen to a topic with quotas and publish limits, in any order: rules 3.1, 3.2,
3.3, 3.4, 4.1, 4.2, 4.3, 4.4, 4.6.

Each seed is a story of its own; one that fails prints its seed and what happened in it.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from headgate.engine.cursor_order import SCANNED_MAX
from tests.unit.engine.quota_story import Act, Story

STORIES = 200
ACTS = (
    *["send"] * 12, *["commit"] * 4, "commit_some", "fail", *["ack"] * 2, *["ack_through"] * 2,
    "ack_all", "skip", *["limit"] * 3, "maximum", "subscribe", "unsubscribe", "leave", "reset",
    *["quotas"] * 3,
    *["wait"] * 2, *["open"] * 2, "close", *["turn"] * 2, *["flush"] * 4, "look",
)  # fmt: skip

REACHED = {
    "waits at quota", "waits at gate", "waits at connection",
    "parked", "forgotten", "producer closed", "newcomer refused", "staged below a size limit",
    "evicted by size", "evicted by time", "over by size, producer_request_hold",
    "over by time, producer_request_hold", "over by size, consumer_backlog_eviction",
    "over by size, producer_exception", "over by time, producer_exception",
}  # fmt: skip


def acts_of(seed: int) -> list[Act]:
    """What happens: quotas first, a look at everything last."""
    chance = random.Random(f"quota story {seed}")
    count = chance.choice((20, 60, 250))
    story = [
        (chance.choice(ACTS), chance.randrange(41), chance.randrange(151)) for _ in range(count)
    ]
    first = ("quotas", chance.randrange(41), chance.randint(20, 150))
    return [first, *story, ("flush", 0, 0), ("look", 0, 0)]


@pytest.mark.parametrize("subscriptions", [0, 1, 3, SCANNED_MAX + 4])
def test_whatever_happens(subscriptions: int) -> None:
    reached: Counter[str] = Counter()
    for seed in range(STORIES):
        acts = acts_of(seed + 1_000 * subscriptions)
        try:
            Story(reached, subscriptions=subscriptions).play(acts)
        except BaseException as error:
            error.add_note(f"seed {seed}: {acts}")
            raise
    assert reached.keys() >= REACHED, f"never reached: {REACHED - reached.keys()}"
