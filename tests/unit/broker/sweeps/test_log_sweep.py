"""The sweep over the logs looks at them under the present clocks."""

from __future__ import annotations

import asyncio

from headgate.testing import World
from tests.unit.broker.playing import played


@played()
async def test_every_check_of_the_log_sweep_sees_the_present_time(world: World) -> None:
    """On a broker without traffic no other work begins a turn before it."""
    broker = world.broker
    seen: list[tuple[int, int]] = []

    def refresh() -> None:
        seen.append((broker.engine.now_ns, broker.clock.monotonic_ns()))

    broker.disk.refresh = refresh  # type: ignore[method-assign]
    await asyncio.sleep(3.5)
    assert len(seen) == 3
    assert all(now_ns == clock_ns for now_ns, clock_ns in seen)
