"""Stories played on a whole simulated broker: ``@played()`` before an async test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from headgate.testing import World

TOPIC = "persistent://public/default/orders"

STORY_SECONDS_MAX = 3_600
"""A story that takes longer (in virtual time) waits for what will never happen."""


def played(
    *, limit_s: float = STORY_SECONDS_MAX, **options: Any
) -> Callable[[Callable[[World], Awaitable[None]]], Callable[[], None]]:
    """Run a story with a started broker; ``options`` are those of :class:`World`."""

    def decorate(story: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
        async def whole(world: World) -> None:
            await world.start()
            await asyncio.wait_for(story(world), limit_s)

        def test() -> None:
            with World(7, **options) as world:
                world.run(whole(world))

        test.__name__ = story.__name__
        test.__doc__ = story.__doc__
        return test

    return decorate
