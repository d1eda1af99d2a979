"""The listener: in memory here; tests/service opens its ports."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.broker.connection import Connection
from headgate.broker.server import BACKLOG_CONNECTIONS_MAX, connection_factory, serve_binary
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


class FakeSocket:
    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 46_650


class FakeServer:
    """Stands where asyncio's server stands."""

    def __init__(self) -> None:
        self.sockets = [FakeSocket()]
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


def listen(world: World, server: FakeServer | OSError) -> list[tuple[Any, ...]]:
    """Have the loop hand out ``server``, or fail so; returns what it is asked for."""
    asked = []

    async def create_server(*arguments: Any, **options: Any) -> FakeServer:
        asked.append((*arguments, options))
        if isinstance(server, OSError):
            raise server
        return server

    world.broker.loop.create_server = create_server  # type: ignore[method-assign,assignment]
    return asked


@played()
async def test_it_listens_and_tells_its_port(world: World) -> None:
    asked = listen(world, FakeServer())
    server = await serve_binary(world.broker, "127.0.0.1", 0)
    assert server.port == 46_650
    ((factory, host, port, options),) = asked
    assert (host, port, options) == ("127.0.0.1", 0, {"backlog": BACKLOG_CONNECTIONS_MAX})
    assert isinstance(factory(), Connection)
    assert factory() is not factory()


@played()
async def test_a_busy_port_is_the_systems_error(world: World) -> None:
    listen(world, OSError(98, "address already in use"))
    with pytest.raises(OSError, match="already in use"):
        await serve_binary(world.broker, "127.0.0.1", 6650)


@played()
async def test_closing_ends_every_connection_and_accepts_nobody(world: World) -> None:
    listener = FakeServer()
    listen(world, listener)
    server = await serve_binary(world.broker, "127.0.0.1", 0)
    clients = [await world.connect() for _ in range(5)]
    await clients[0].producer(TOPIC, name="p")
    await server.close()
    assert not listener.is_open
    assert not world.broker.connections
    assert not world.broker.engine.topics[TOPIC].producers
    await asyncio.gather(*[client.lost for client in clients])


@played()
async def test_connections_of_one_factory_share_the_broker_and_nothing_else(world: World) -> None:
    make = connection_factory(world.broker)
    one, other = make(), make()
    assert one.broker is other.broker is world.broker
    assert one.producers is not other.producers
