"""Slices so small that few clients make the broker do its work in several, as crowds do."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Final

from headgate.admin import app
from headgate.broker import policy_rollout, registry, subscriptions
from headgate.broker.connection import connection

PART: Final = 0.7
"""How many of the bounds are small at once: one that always is hides what the others do."""

BOUNDS: Final[Mapping[str, int]] = {
    # Jobs.
    "SLICE_UNITS": 8, "JOB_UNITS_MIN": 1, "PIECE_UNITS": 2, "SLICE_YIELDS": 1, "SLICE_TOPICS": 1,
    "CLOSED_AT_ONCE": 1, "RANGES_PER_SLICE": 1, "SLICE_PARTITIONS": 1,
    "SLICE_ITEMS": 1, "READERS_AT_ONCE": 1, "READERS_LEFT_MAX": 2, "ROWS_PER_COMMIT": 1,
    "CHANGED_AT_ONCE": 1, "UNLOADED_AT_ONCE": 1, "VIEWS_PER_STEP": 1, "VIEWS_AT_ONCE": 1,
    "RESUMED_MAX": 1, "STEP_UNITS": 1, "SLOWED_PER_STEP": 1,
    # Commands.
    "LOOP_UNITS": 8, "TURN_UNITS": 8, "SLICE_IDS": 2, "PIECE_IDS": 2, "SLICE_REDELIVERED_IDS": 2,
    "GIVE_BACK_ENTRIES": 2, "SLICE_NAMES": 1, "WOKEN_MAX": 1, "RESUMED_AT_ONCE": 1,
    # The flush.
    "FLUSH_ENTRIES_MAX": 8, "WAITING_ENTRIES_MIN": 4, "TOUCHED_UNITS_MIN": 2, "WOKEN_UNITS_MAX": 2,
    "FEW_DIRTY": 1, "PUMP_ENTRIES_MAX": 2, "CROWDED_MAX": 2, "RUN_ENTRIES_MAX": 2,
    "EVICTED_IN_STEP": 1, "INDEXED_IN_STEP": 1, "ENDED_IN_STEP": 1, "ENDED_IN_LOOK": 1,
    "ENDED_IN_TURN": 1, "RUN_SENDS_MAX": 1, "SLICE_GATES": 2, "TURN_GATES": 1, "LINED_UP_MAX": 1,
    "TOLD_MAX": 1, "ROOM_TOLD_MAX": 1, "PUT_ASIDE_MAX": 1, "SCANNED_MAX": 1,
    # The end of a commit.
    "COMMIT_UNITS": 2, "ACKS_STAGED_MAX": 1, "ENTRIES_A_STEP": 1, "TOLD_A_STEP": 1,
    "WOKEN_AT_ONCE_MAX": 1,
    # Reading.
    "OPEN_READS_MAX": 1, "FIRST_READS_MAX": 1, "READ_ENTRIES_MAX": 4, "IN_LANE_MAX": 1,
    "PIECE_BLOCKS": 1, "LOADED_MAX": 1, "LOADED_OF_TENANT_MAX": 1,
    # Upkeep of the log.
    "PIECE_PARTS": 1, "STEP_TOPICS": 1, "SLICE_SEGMENTS": 1, "SLICE_ENTRIES": 2, "_STEP_ITEMS": 1,
    "_STEP_BLOCKS": 1, "_SLICE_NUMBERS": 1, "_SLICE_TOTALS": 1,
    # Answers over HTTP.
    "STEP_PIECES": 1, "STEP_FREED": 1, "NAMES_PER_TURN": 2, "EXPIRED_PER_PIECE": 1,
    "EXPIRED_AT_ONCE": 1, "LOOKED_AT_ONCE": 1, "AT_ONCE": 1,
}  # fmt: skip
"""By the names of the constants, in each module that uses them."""

IN_A_JOB: Final = (connection, policy_rollout, registry, subscriptions)
"""What does at once what fits into a slice, and here nothing."""


@contextmanager
def small_slices(chance: random.Random) -> Iterator[None]:
    """Bound a part of the slices so within it."""
    small = {name: bound for name, bound in BOUNDS.items() if chance.random() < PART}
    before: list[tuple[ModuleType, str, int]] = []
    for module in _modules():
        for name in small.keys() & vars(module).keys():
            before.append((module, name, vars(module)[name]))
            is_whole = name == "SLICE_UNITS" and module in IN_A_JOB
            setattr(module, name, 0 if is_whole else small[name])
    assert small.keys() == {name for _, name, _ in before}, "a bound has another name"
    try:
        yield
    finally:
        for module, name, bound in before:
            setattr(module, name, bound)


def _modules() -> list[ModuleType]:
    """The broker's modules, with those of the admin API."""
    assert app.__name__ in sys.modules
    return [module for name, module in sorted(sys.modules.items()) if name.startswith("headgate.")]
