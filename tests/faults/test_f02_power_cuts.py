"""F2: more than a thousand seeded power cuts, with everything under way that changes the disk.

``./dev test faults -- -k f02 --simulation-seeds FIRST:COUNT`` plays other seeds, and
``./dev soak powercuts [N|forever]`` seeds that no run had before.
"""

from __future__ import annotations

import functools
from collections import Counter

import pytest

from tests.faults.long_life import Cuts, live
from tests.seeds import play_seeds

SEEDS = range(8)
CUTS_EACH = 130
UNDER_WAY = {
    "publishing", "acknowledging", "trimming", "policy change", "a start",
    "topic creation", "topic deletion", "subscription creation", "subscription deletion",
    "job prepare", "job seal", "job checkpoint", "job delete", "an old file", "rewriting",
}  # fmt: skip
"""What the power interrupts at least five times; jobs are those of the log's maintenance."""


@functools.cache
def cuts_of(seed: int) -> Cuts:
    """The cuts of one seed; a seed is played once."""
    return live(seed, CUTS_EACH)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play the seeds asked for, or the usual ones."""
    play_seeds(metafunc, SEEDS)


def test_nothing_promised_is_lost_over_many_power_cuts(seed: int) -> None:
    assert cuts_of(seed).count >= CUTS_EACH


def test_a_thousand_cuts_meet_all_that_changes_the_disk(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--simulation-seeds"):
        return
    under_way = Counter[str]()
    for seed in SEEDS:
        under_way += cuts_of(seed).under_way
    total = sum(cuts_of(seed).count for seed in SEEDS)
    request.config.get_terminal_writer().line(f"{total:,} power cuts, under way: {under_way}")
    assert total >= 1_000
    assert {what for what, count in under_way.items() if count >= 5} >= UNDER_WAY
