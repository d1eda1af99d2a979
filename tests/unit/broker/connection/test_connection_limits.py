"""Connections beyond the limits are refused; those that are open stay."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.units import NS_PER_S
from headgate.broker.connection.connection_limits import ConnectionLimits
from headgate.broker.held_memory import TLS_UNITS
from headgate.policy.settings import Settings
from headgate.testing import ConnectionLostError, World
from headgate.testing.client import SimClient
from headgate.testing.errors import RefusedError
from headgate.wire.codes import ServerError
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.publishing import set_dynamic

REFUSED = "Reached the maximum number of connections"


class Clock:
    """Stands where it is put."""

    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


def test_each_host_has_its_own_count() -> None:
    limits = ConnectionLimits(Settings(brokerMaxConnectionsPerIp=2), Clock())
    for port in (1, 2):
        assert limits.refusal(f"/10.0.0.1:{port}") == ""
        limits.added(f"/10.0.0.1:{port}")
    assert limits.refusal("/10.0.0.1:3") == f"{REFUSED} on address/10.0.0.1:3"
    assert limits.refusal("/10.0.0.2:3") == ""
    limits.removed("/10.0.0.1:1", is_authenticated=False)
    assert limits.refusal("/10.0.0.1:3") == ""
    assert limits.refused_count == 1


def test_all_hosts_count_for_the_brokers_limit() -> None:
    settings = Settings(brokerMaxConnections=2)
    limits = ConnectionLimits(settings, Clock())
    limits.added("/10.0.0.1:1")
    limits.added("/::1:1")
    assert limits.refusal("/10.0.0.3:1") == REFUSED
    settings.brokerMaxConnections = 3
    assert limits.refusal("/10.0.0.3:1") == ""
    settings.brokerMaxConnections = 1
    limits.removed("/::1:1", is_authenticated=False)
    assert limits.refusal("/10.0.0.3:1") == REFUSED


def test_refusals_are_logged_once_and_so_is_their_end(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    limits = ConnectionLimits(Settings(brokerMaxConnections=1), clock)
    limits.added("/a:1")
    for second in range(3):
        clock.now_ns = second * NS_PER_S
        assert limits.refusal(f"/b:{second}")
        limits.log_if_due()
    assert caplog.messages == ["a connection from /b:0 is refused: brokerMaxConnections=1"]
    clock.now_ns += 10 * NS_PER_S
    for _ in range(2):
        limits.log_if_due()
    assert caplog.messages[1:] == ["no connection was refused for 10 s; 3 were refused before"]


async def refusal_of(client: SimClient) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        await client.connect()
    await client.lost
    return caught.value


@played()
async def test_one_more_is_answered_and_closed_and_a_reconnect_has_room(world: World) -> None:
    first = await world.connect()
    producer = await first.producer(TOPIC)
    await set_dynamic(world, "brokerMaxConnections", "1")
    refused = await refusal_of(world.open_connection())
    assert (refused.code, refused.message) == (ServerError.NOT_ALLOWED_ERROR, REFUSED)
    assert await producer.send(b"goes on")
    assert len(world.broker.connections) == 1
    first.abort()
    await asyncio.sleep(1)  # until the broker notices
    assert await (await world.connect()).producer(TOPIC, name=producer.name)
    with pytest.raises((RefusedError, ConnectionLostError)):
        await world.connect()
    await set_dynamic(world, "brokerMaxConnections", None)
    await world.connect()


@played(settings={"brokerMaxConnectionsPerIp": "1"})
async def test_the_address_is_named(world: World) -> None:
    await world.connect()
    refused = await refusal_of(world.open_connection())
    assert refused.message.startswith(f"{REFUSED} on address/")


def test_strangers_have_bounds_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    """They may take three quarters of the descriptors for clients, from one address as many as
    they leave to others."""
    limits = ConnectionLimits(Settings(), Clock())
    limits.set_descriptors(8)
    for address, places in (("a", 3), ("b", 2), ("c", 1)):
        for port in range(places):
            assert limits.refusal(f"/{address}:{port}") == ""
            limits.added(f"/{address}:{port}")
        assert limits.refusal(f"/{address}:{places}") == REFUSED
    assert caplog.messages == [
        "a connection from /a:3 is refused: 6 in all, and from one address as many as are free for"
        " others may wait for their CONNECT"
    ]
    assert limits.refusal("/d:1") == REFUSED, "three quarters in all"
    limits.authenticated("/a:0")
    assert limits.refusal("/d:1") == ""
    limits.removed("/b:0", is_authenticated=False)
    limits.removed("/b:1", is_authenticated=False)
    assert limits.refusal("/a:3") == ""
    limits.removed("/a:0", is_authenticated=True)
    assert limits.refusal("/a:3") == ""


@played()
async def test_a_connect_frees_the_place_of_a_stranger(world: World) -> None:
    world.broker.connection_limits.set_descriptors(2)  # one from an address, one in all
    first = world.open_connection()
    await asyncio.sleep(0.01)
    refused = await refusal_of(world.open_connection())
    assert refused.message == REFUSED
    await first.connect()
    other = await world.connect()
    assert await other.producer(TOPIC)


def test_a_connection_over_tls_takes_the_memory_of_four() -> None:
    limits = ConnectionLimits(Settings(), Clock(), memory_max=lambda: 8)
    for port in range(2):
        assert limits.refusal(f"/a:{port}") == ""
        limits.added(f"/a:{port}", TLS_UNITS)
    assert limits.refusal("/a:3") == REFUSED
    limits.removed("/a:1", TLS_UNITS, is_authenticated=False)
    assert limits.refusal("/a:3") == ""


def test_strangers_of_one_address_leave_as_much_memory_to_others() -> None:
    """250 silent connections in a second, 10 s each, kept every place: others were refused."""
    limits = ConnectionLimits(
        Settings(), Clock(), memory_max=lambda: 200, memory_max_of_few=lambda: 200
    )
    for address, places in (("a", 25), ("b", 13), ("c", 6)):
        for port in range(places):
            assert limits.refusal(f"/{address}:{port}") == ""
            limits.added(f"/{address}:{port}", TLS_UNITS)
        assert limits.refusal(f"/{address}:99") == REFUSED
    assert limits.refusal("/d:1") == ""
    limits.authenticated("/a:0", TLS_UNITS)
    limits.removed("/a:1", TLS_UNITS, is_authenticated=False)
    limits.removed("/b:1", TLS_UNITS, is_authenticated=False)
    assert limits.refusal("/c:99") == ""
    limits.removed("/a:0", TLS_UNITS, is_authenticated=True)
    for port in range(2, 25):
        limits.authenticated(f"/a:{port}", TLS_UNITS)
    assert limits.refusal("/a:99") == "", "who has authenticated is no stranger"


def test_strangers_of_one_48_leave_a_part_of_the_memory_to_others() -> None:
    """1,000 silent connections in a second from 2,000 networks of one machine kept every place of
    4,096: of the new ones of others 39 of 66 were refused."""
    limits = ConnectionLimits(
        Settings(), Clock(), memory_max=lambda: 1_600, memory_max_of_few=lambda: 1_600
    )
    for number in range(400):
        if not limits.refusal(f"/2001:db8:1:{number:x}::1:5000"):
            limits.added(f"/2001:db8:1:{number:x}::1:5000", TLS_UNITS)
    assert limits.refusal("/2001:db8:1:ffff::1:5000") == REFUSED
    for number in range(50):
        assert limits.refusal(f"/2001:db8:2::1:{number}") == ""
        limits.added(f"/2001:db8:2::1:{number}", TLS_UNITS)
    assert limits.refusal("/10.0.0.1:5000") == ""


@pytest.mark.parametrize("networks", [1, 500])
def test_idle_connections_of_one_machine_do_not_take_the_last_places(networks: int) -> None:
    """One role with 4,096 idle connections, which had authenticated, kept all others out, for as
    long as it answered a PING now and then."""
    limits = ConnectionLimits(
        Settings(), Clock(), memory_max=lambda: 1_600, memory_max_of_few=lambda: 1_600
    )
    for number in range(400):
        address = f"/2001:db8:1:{number % networks:x}::1:{number}"
        if not limits.refusal(address):
            limits.added(address, TLS_UNITS)
            limits.authenticated(address, TLS_UNITS)
    assert limits.refusal("/2001:db8:1:0::1:5000") == REFUSED
    for number in range(20):
        assert limits.refusal(f"/10.0.0.1:{number}") == "", number
        limits.added(f"/10.0.0.1:{number}", TLS_UNITS)
        limits.authenticated(f"/10.0.0.1:{number}", TLS_UNITS)
    assert limits.refusal("/10.0.0.2:5000") == ""
    limits.removed("/2001:db8:1:0::1:0", TLS_UNITS, is_authenticated=True)


def test_strangers_whose_address_is_unknown_leave_as_much_to_others() -> None:
    """A client that has left has no address any more, where the loop asks the system for it."""
    limits = ConnectionLimits(
        Settings(brokerMaxConnectionsPerIp=3), Clock(), memory_max_of_few=lambda: 4 * TLS_UNITS
    )
    for _ in range(2):
        assert limits.refusal("") == ""
        limits.added("", TLS_UNITS)
    assert limits.refusal("") == REFUSED
    assert limits.refusal("/a:1") == ""
    for _ in range(2):
        limits.authenticated("", TLS_UNITS)
    assert limits.refusal("") == ""
    limits.added("")
    assert limits.refusal("").startswith(f"{REFUSED} on address")
    for is_authenticated in (True, True, False):
        limits.removed(
            "", 1 if not is_authenticated else TLS_UNITS, is_authenticated=is_authenticated
        )
    assert limits.refusal("") == ""


def test_idle_connections_of_few_addresses_keep_no_other_one_out() -> None:
    """While the process nears the limit on its memory, few fit, and idle ones are not closed."""
    limits = ConnectionLimits(
        Settings(), Clock(), memory_max=lambda: 20, memory_max_of_few=lambda: 200
    )
    for number in range(40):
        limits.added(f"/10.0.0.{number % 2}:{number}", TLS_UNITS)
    assert limits.refusal("/10.0.0.1:99") == REFUSED
    for number in range(10):
        assert limits.refusal(f"/10.0.1.{number}:1") == ""
        limits.added(f"/10.0.1.{number}:1", TLS_UNITS)
    assert limits.refusal("/10.0.0.1:99") == REFUSED
    assert limits.refusal("/10.0.2.1:1") == REFUSED, "the whole bound is reached"
