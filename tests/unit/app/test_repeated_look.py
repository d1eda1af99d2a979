"""A look that fails is logged, and ends no later one."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from headgate.app.repeated_look import RepeatedLook
from headgate.testing.lanes import SimLane
from headgate.testing.loop import SimLoop


class Counted(RepeatedLook):
    looks = 0

    async def look(self) -> None:
        self.looks += 1
        if self.looks == 1:
            raise RuntimeError("a bug")


def test_a_look_that_fails_is_logged_and_followed_by_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = SimLoop()
    look = Counted(SimLane(loop, random.Random(1)), 5, "what is new", logging.getLogger("looks"))

    async def run() -> None:
        look.start()
        await asyncio.sleep(16)
        look.stop()
        await asyncio.sleep(20)

    loop.run_until_complete(run())
    loop.close()
    assert look.looks == 3
    assert caplog.messages == ["looking for what is new failed; the next look follows"]
