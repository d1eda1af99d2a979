"""Bounds that few clients reach, and disks that are full, hang and fail."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable
from typing import Final

from headgate.base.errors import StorageError
from headgate.base.units import NS_PER_S
from headgate.fs import Operation
from headgate.testing import World

SETTINGS: Final = {
    "forceDeleteNamespaceAllowed": ("true",),
    "headgateHoldParkMs": ("0", "300", "4000"),
    "headgateMaxParkedBytesPerConnection": ("2000", "20000"),
    "headgateClientMemoryMB": ("1",),
    "headgateDelayedIndexMemoryMB": ("1",),
    "headgateMaxStoragePerTenantMB": ("1",),
    "headgateMaxSubscriptionsPerTenant": ("6", "20"),
    "dispatchThrottlingRateInMsg": ("200",),
    "dispatchThrottlingRateRelativeToPublishRate": ("true",),
    "brokerPublisherThrottlingMaxMessageRate": ("20", "200"),
    "adaptivePublisherThrottlingEnabled": ("true",),
    "brokerDeduplicationMaxNumberOfProducers": ("1", "3"),
    "maxUnackedMessagesPerSubscription": ("3", "20"),
    "delayedDeliveryMaxDelayInMillis": ("1000",),
}
SET_PART: Final = 0.4
TROUBLE_S_MAX: Final = 3.0
REPEATED_S: Final = 2.0
"""After a failure, what failed is tried again within this time."""
PARKED_BYTES: Final = (4_000, 100_000)
DELAYED_BYTES: Final = 300
"""What the indexes of delayed messages may take in hard searches."""
WALL_STEPS_S: Final = (-3_600, -2, 2, 60, 3_600)


class SharedMemory:
    """Memory that is short now and then, of the machine and of the process."""

    limit_bytes = 100

    def __init__(self) -> None:
        self.is_short = False

    def used_bytes(self) -> int:
        """Now."""
        return 94 if self.is_short else 10


def hard_settings(chance: random.Random) -> dict[str, str]:
    """Some of the settings that hold clients back."""
    return {
        name: chance.choice(values)
        for name, values in SETTINGS.items()
        if chance.random() < SET_PART
    }


class Hardships:
    """What goes wrong below one broker. ``is_hard``: whether anything does."""

    def __init__(self, world: World, chance: random.Random, *, is_hard: bool) -> None:
        self._world = world
        self._chance = chance
        self.is_hard = is_hard
        self._kinds: tuple[Callable[[float], Awaitable[None]], ...] = (
            self._fill, self._hang, self._fail_metadata, self._fail_reads, self._shorten_memory,
            self._set_clocks, self._sweep,
        )  # fmt: skip
        if is_hard:
            world.broker.engine.limits.parked_bytes_max = chance.choice(PARKED_BYTES)
            world.broker.engine.delays.memory_bytes_max = DELAYED_BYTES

    async def one(self) -> None:
        """One of them, from its beginning to its end."""
        await self._chance.choice(self._kinds)(self._chance.uniform(0.0, TROUBLE_S_MAX))

    async def _fill(self, seconds: float) -> None:
        fs = self._world.fs
        fs.capacity_bytes = fs.used_bytes() + self._chance.choice((0, 100, 10_000))
        await asyncio.sleep(seconds)
        fs.capacity_bytes = None

    async def _hang(self, seconds: float) -> None:
        lane = self._chance.choice(self._world.lanes)
        lane.freeze()
        await asyncio.sleep(seconds)
        lane.thaw()

    async def _fail_metadata(self, _: float) -> None:
        error = StorageError("the metadata's disk hiccups", retryable=True)
        self._world.store.fail_next(error, self._chance.choice((1, 4)))

    async def _fail_reads(self, seconds: float) -> None:
        share = self._chance.choice((0.3, 1.0))

        def plan(operation: Operation) -> None:
            if operation.kind in ("read", "open") and self._chance.random() < share:
                raise OSError(errno.EIO, "this part of the disk is not readable")

        self._world.disk.plan = plan
        await asyncio.sleep(seconds)
        self._world.disk.plan = _nothing

    async def _shorten_memory(self, seconds: float) -> None:
        memory = self._world.memory
        assert isinstance(memory, SharedMemory)
        memory.is_short = True
        await asyncio.sleep(seconds)
        memory.is_short = False

    async def _set_clocks(self, _: float) -> None:
        step_ns = self._chance.choice(WALL_STEPS_S) * NS_PER_S
        if step_ns > 0 and self._chance.random() < 0.5:
            self._world.clock.sleep(step_ns)
        else:
            self._world.clock.step_wall(step_ns)

    async def _sweep(self, _: float) -> None:
        """What is due once in a minute comes now."""
        broker = self._world.broker
        await broker.endings.messages.expire()
        await broker.trimming.trim()

    async def end(self) -> None:
        """Return when all is well again, also behind what is still repeated."""
        await asyncio.sleep(TROUBLE_S_MAX)
        self._world.fs.capacity_bytes = None
        self._world.disk.plan = _nothing
        self._world.store._failures.clear()
        await asyncio.sleep(REPEATED_S)


def _nothing(_: Operation) -> None:
    return
