"""A whole broker under random producers, consumers, administrators, saboteurs and power cuts.

Each seed is a story of its own; see :mod:`tests.sim.brokersim.model` for what must hold. One that
fails prints its seed and its last events; play it again, or many others, with
``./dev test simulation -- -k broker --simulation-seeds FIRST:COUNT``.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from contextlib import nullcontext

import pytest

from tests.seeds import play_seeds
from tests.sim.brokersim.story import Story
from tests.sim.late_receipts import late_receipts
from tests.sim.small_slices import small_slices

SEEDS = range(24)
STORIES_MAX = 40


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    play_seeds(metafunc, SEEDS)


@functools.cache
def seen_in_story(seed: int) -> Counter[str]:
    """What happened in a story; a seed is played once. In a part of them slices are small, so that
    much happens between two of them, and in others receipts are late."""
    slices = small_slices(random.Random(f"slices {seed}")) if seed % 3 == 2 else nullcontext()
    late = late_receipts(random.Random(f"late {seed}")) if seed % 2 else nullcontext(Counter())
    with slices, late as seen:
        story = Story(seed)
        story.play()
    return story.world.seen + seen


def test_story(seed: int) -> None:
    seen_in_story(seed)


def unseen_in_stories(wanted: set[str]) -> set[str]:
    """What does not happen in any of the first stories. They are played until all has happened:
    any change to the broker's work makes each seed another story."""
    seen: Counter[str] = Counter()
    for seed in range(STORIES_MAX):
        seen += seen_in_story(seed)
        if seen.keys() >= wanted:
            break
    return wanted - seen.keys()


def test_backlog_quotas_bite_in_stories() -> None:
    """Rules 4.2, 4.3 and 4.6: what the stories check about quotas happens in them."""
    wanted = {"append below a limit", "size quota exceeded", "size quota released",
              "time quota exceeded", "evicted by size", "evicted by time", "parked"}  # fmt: skip
    assert unseen_in_stories(wanted) == set()


def test_parts_of_batches_are_acknowledged_in_stories() -> None:
    """What the stories check about messages of batches happens in them, over crashes as well."""
    wanted = {"batches sent in part", "parts of batches after a start"}
    assert unseen_in_stories(wanted) == set()


def test_publish_limits_bite_in_stories() -> None:
    """Rules 3.1, 3.2, 3.3, 3.4 and 5.2: what the stories check about publish limits happens in
    them."""
    wanted = {"publish limit of MESSAGES", "publish limit of BYTES", "not read",
              "parked by topic_rate", "parked by broker_rate", "parked by backlog_quota",
              "parked by pending_limit", "parked by adaptive", "parked by disk_full", "slowed",
              "observed"}  # fmt: skip
    assert unseen_in_stories(wanted) == set()


def test_commits_overlap_in_stories() -> None:
    """What the stories check about receipts holds also while those of several commits wait, and
    behind them the end of one that failed."""
    wanted = {"commits whose receipts join", "ends that wait for receipts",
              "waits for receipts of a topic"}  # fmt: skip
    assert unseen_in_stories(wanted) == set()


def test_the_same_seed_gives_the_same_story() -> None:
    first, second = Story(3, episodes=1), Story(3, episodes=1)
    first.play()
    second.play()
    assert first.model.receipts > 0
    assert first.fingerprint == second.fingerprint
