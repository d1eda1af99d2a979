"""How much memory one limiter takes: a budget that counts nothing, and busy ones."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable

from headgate.base.units import NS_PER_S
from headgate.flow.limits.budget import Budget
from headgate.flow.limits.rate_limit import Dimension, Level

START_NS = 1_000_000 * NS_PER_S
BUSY_CHARGES = 20_000
_SAMPLES = 16


def idle() -> Budget:
    """One that nothing was ever delivered under."""
    return Budget(500, NS_PER_S, Level.TOPIC, Dimension.MESSAGES, START_NS)


def idle_again(charges: int) -> Budget:
    """One under which so many slots were filled, all of which have left the window."""
    budget = idle()
    for index in range(charges):
        budget.charge(START_NS + index * NS_PER_S // charges, 1)
    if not budget.is_clear(START_NS + 3 * NS_PER_S):
        raise RuntimeError("nothing was delivered for two periods")
    return budget


def busy(entry: int, rate_per_period: int, period_ns: int) -> Budget:
    """One whose limit of a million is asked for by entries of that size, so many a period."""
    budget = Budget(10**6, period_ns, Level.TOPIC, Dimension.BYTES, START_NS)
    budget.begin_waiting(START_NS, START_NS)
    for index in range(BUSY_CHARGES):
        budget.charge(START_NS + index * period_ns // rate_per_period, entry)
    return budget


def object_bytes(budget: Budget) -> int:
    """The object and its arrays."""
    return sum(map(sys.getsizeof, (budget, budget._amounts, budget._gaps)))


def heap_bytes(make: Callable[[], Budget]) -> float:
    """All that one more of them takes, its numbers too, as the interpreter's allocator sees it."""
    kept: list[Budget | None] = [None] * _SAMPLES
    gc.collect()
    tracemalloc.start()
    for index in range(_SAMPLES):
        kept[index] = make()
    current_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return current_bytes / _SAMPLES
