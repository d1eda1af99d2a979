"""Clients and requests to the admin API at once: no race among them harms the broker.

``./dev soak races`` plays many more seeds; one that fails is played again with
``./dev test simulation -- -k races --simulation-seeds FIRST:COUNT``.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.seeds import play_seeds
from tests.sim.racesim.search import search

SEEDS = range(8)
PHASES = 8


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    play_seeds(metafunc, SEEDS)


def test_no_race_harms_the_broker(seed: int) -> None:
    played = search(seed, PHASES)
    # It did much, and most of it was not refused.
    assert played.commands_count > 200
    assert played.requests[200] + played.requests[204] > 200
    assert played.kept_count > 0


def test_the_same_seed_finds_the_same() -> None:
    first, second = search(3, 1), search(3, 1)
    assert first.requests == second.requests
    assert first.commands_count == second.commands_count
    assert first.requests != Counter()
