"""The seeds that the tests of a simulation play."""

from __future__ import annotations

import pytest


def play_seeds(metafunc: pytest.Metafunc, usual: range) -> None:
    """Have the tests with an argument ``seed`` play those of ``--simulation-seeds``, or ``usual``
    ones. For ``pytest_generate_tests``."""
    if "seed" not in metafunc.fixturenames:
        return
    seeds = usual
    if wanted := metafunc.config.getoption("--simulation-seeds", default=None):
        first, count = map(int, wanted.split(":"))
        seeds = range(first, first + count)
    metafunc.parametrize("seed", seeds)
