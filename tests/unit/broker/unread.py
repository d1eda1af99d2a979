"""Crowds of clients that ask for large answers and do not read them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headgate.base.units import MIB
from headgate.testing import World


async def unsent_after(world: World, ask: Callable[[int], bytes]) -> int:
    """What 40 connections leave unread that ask for a large answer each, and do not read it."""
    memory = world.broker.client_memory
    memory.bytes_max = memory.bytes_max_set = 2 * MIB
    clients = [await world.connect() for _ in range(40)]
    await asyncio.sleep(2)
    for number, client in enumerate(clients):
        client.transport.pause_reading()
        client.write(b"".join(ask(10 * number + each) for each in range(10)))
    await asyncio.sleep(0.2)
    return sum(each.unsent_bytes() for each in world.broker.connections)
