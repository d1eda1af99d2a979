"""Stories played on a whole simulated broker: ``@played()`` before an async test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from headgate.testing import World

TOPIC = "persistent://public/default/orders"


def played(**options: Any) -> Callable[[Callable[[World], Awaitable[None]]], Callable[[], None]]:
    """Run a story with a started broker; ``options`` are those of :class:`World`."""

    def decorate(story: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
        async def whole(world: World) -> None:
            await world.start()
            await story(world)

        def test() -> None:
            with World(7, **options) as world:
                world.run(whole(world))

        test.__name__ = story.__name__
        test.__doc__ = story.__doc__
        return test

    return decorate
