"""Slices so small that few clients make the broker do its work in several, as crowds do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

from headgate.broker import (
    backlog_analysis,
    policy_rollout,
    producer_closing,
    registry,
    slices,
    subscriptions,
)
from headgate.broker.commands import acknowledging, consuming
from headgate.broker.connection import connection
from headgate.broker.work import scheduler
from headgate.engine import dispatch_shared

BOUNDS: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (scheduler, "SLICE_UNITS", 8),
    (scheduler, "JOB_UNITS_MIN", 1),
    (subscriptions, "SLICE_UNITS", 0),
    (registry, "SLICE_UNITS", 0),
    (connection, "SLICE_UNITS", 0),
    (policy_rollout, "SLICE_UNITS", 0),
    (producer_closing, "CLOSED_AT_ONCE", 1),
    (slices, "PIECE_UNITS", 1),
    (backlog_analysis, "RANGES_PER_SLICE", 1),
    (acknowledging, "SLICE_IDS", 2),
    (acknowledging, "PIECE_IDS", 2),
    (consuming, "SLICE_REDELIVERED_IDS", 2),
    (dispatch_shared, "GIVE_BACK_ENTRIES", 2),
)


@contextmanager
def small_slices() -> Iterator[None]:
    """Bound slices so within it."""
    before = [getattr(module, name) for module, name, _ in BOUNDS]
    for module, name, bound in BOUNDS:
        setattr(module, name, bound)
    try:
        yield
    finally:
        for (module, name, _), bound in zip(BOUNDS, before, strict=True):
            setattr(module, name, bound)
