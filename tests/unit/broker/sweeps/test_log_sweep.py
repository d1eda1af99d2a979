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


@played()
async def test_it_waits_for_no_trimming(world: World) -> None:
    """To trim 100,000 topics may take a minute beside other work."""
    broker = world.broker

    async def for_ever(_: object) -> None:
        await asyncio.get_running_loop().create_future()

    broker.trimming._trim_each = for_ever  # type: ignore[method-assign]
    asked_ns: list[int] = []
    broker.disk.refresh = lambda: asked_ns.append(  # type: ignore[method-assign]
        broker.engine.now_ns
    )
    await asyncio.sleep(5.5)
    assert len(asked_ns) == 5
