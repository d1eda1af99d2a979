"""The listener: in memory here; tests/service opens its ports."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from headgate.broker.connection.connection import Connection
from headgate.broker.server import command_handlers, connection_factory, serve_binary
from headgate.testing import World
from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from tests.unit.broker.playing import TOPIC, played

CARRIED_OUT_BY_THE_CONNECTION = {
    CommandType.CONNECT,
    CommandType.AUTH_RESPONSE,
    CommandType.PING,
    CommandType.PONG,
    CommandType.SEND,
    CommandType.ACK,
    CommandType.FLOW,
}


class FakeServer:
    """Stands where asyncio's server stands."""

    def __init__(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


def listen(world: World, server: FakeServer) -> list[dict[str, Any]]:
    """Have the loop hand out ``server``; returns what it is asked for."""
    asked = []

    async def create_server(factory: Any, **options: Any) -> FakeServer:
        asked.append({"factory": factory, **options})
        return server

    world.broker.loop.create_server = create_server  # type: ignore[method-assign,assignment]
    return asked


@played()
async def test_each_client_gets_a_connection_of_its_own(world: World) -> None:
    asked = listen(world, FakeServer())
    with socket.socket() as listener:
        await serve_binary(world.broker, listener, 1_000)
        (options,) = asked
        assert options["sock"] is listener
        assert options["backlog"] == 1_000, "asyncio would listen again with a backlog of 100"
    factory = options["factory"]
    assert isinstance(factory(), Connection)
    assert factory() is not factory()


@played()
async def test_closing_ends_every_connection_and_accepts_nobody(world: World) -> None:
    listener = FakeServer()
    listen(world, listener)
    with socket.socket() as unused:
        server = await serve_binary(world.broker, unused, 100)
    clients = [await world.connect() for _ in range(5)]
    await clients[0].producer(TOPIC, name="p")
    await server.close()
    assert not listener.is_open
    assert not world.broker.connections
    assert not world.broker.engine.topics[TOPIC].producers
    await asyncio.gather(*[client.lost for client in clients])


@played()
async def test_all_handles_of_a_socket_accept_and_end_together(world: World) -> None:
    server = FakeServer()
    asked = listen(world, server)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = await serve_binary(world.broker, listener, 100, handles=3)
        assert [each["backlog"] for each in asked] == [100] * 3
        assert {each["sock"].getsockname() for each in asked} == {listener.getsockname()}
        for each in asked[1:]:
            each["sock"].close()
    await served.close()
    assert not server.is_open


@played()
async def test_connections_of_one_factory_share_the_broker_and_nothing_else(world: World) -> None:
    make = connection_factory(world.broker)
    one, other = make(), make()
    assert one._host is other._host is world.broker
    assert one.producers is not other.producers


@played()
async def test_every_command_that_is_built_has_a_handler(world: World) -> None:
    handled = set(command_handlers(world.broker).by_type)
    assert not handled & CARRIED_OUT_BY_THE_CONNECTION
    assert handled | CARRIED_OUT_BY_THE_CONNECTION == {
        kind for kind, facts in COMMANDS.items() if facts.built
    }
