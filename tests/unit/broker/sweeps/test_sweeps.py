"""Periodic jobs go on after failures; what ends one is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headgate.base.errors import InvariantError, StorageError
from headgate.testing import World
from tests.unit.broker.playing import played


def with_failing_history(error: Exception) -> Callable[[], None]:
    async def story(world: World) -> None:
        def begin_round() -> bool:
            raise error

        world.observer.history.begin_round = begin_round  # type: ignore[method-assign]
        await asyncio.sleep(5)

    return played()(story)


def test_a_bug_in_a_sweep_is_reported() -> None:
    """The simulation ends a run for whatever is logged with its traceback."""
    with pytest.raises(KeyError, match="ours"):
        with_failing_history(KeyError("ours"))()


def test_a_broken_invariant_reaches_whoever_watches_the_loop() -> None:
    with pytest.raises(InvariantError, match="broken"):
        with_failing_history(InvariantError("broken"))()


@played()
async def test_a_sweep_that_failed_comes_again(world: World) -> None:
    rounds = []

    def begin_round() -> bool:
        rounds.append(world.now_s)
        raise StorageError("not now", retryable=True)

    world.observer.history.begin_round = begin_round  # type: ignore[method-assign]
    await asyncio.sleep(5.5)
    assert len(rounds) == 5
    world.broker.sweeps.stop()
    await asyncio.sleep(5)
    assert len(rounds) == 5
