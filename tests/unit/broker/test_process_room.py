"""What clients may hold while the process nears its memory limit."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.identity import NOBODY
from headgate.base.names import NamespaceName
from headgate.base.units import GIB, KIB, MIB
from headgate.broker.client_memory import ClientMemory
from headgate.broker.held_memory import CONNECTION_BYTES
from headgate.broker.http_memory import HttpMemory
from headgate.broker.process_room import PART_MIN, ProcessRoom, room_part
from headgate.engine import memory_part
from headgate.engine.errors import NotAllowedError
from headgate.engine.tenant_storage import RUNS_MIN
from headgate.metadata.errors import RefusalError
from headgate.policy.settings import Settings
from headgate.testing import World
from headgate.testing.errors import RefusedError
from tests.unit.broker.memory_rig import Clock, Peer, held, measure
from tests.unit.broker.playing import TOPIC, played

LIMIT = 1_000 * MIB
MAX = 160 * MIB


class Process:
    """The memory of a process, as a test says."""

    limit_bytes = LIMIT

    def __init__(self, used_mb: int = 0) -> None:
        self.used_mb = used_mb

    def used_bytes(self) -> int:
        return self.used_mb * MIB


@pytest.mark.parametrize(
    ("used_mb", "part"),
    [
        (0, 1.0), (800, 1.0), (830, 0.8), (875, 0.5), (935, 0.1),
        (949, PART_MIN), (950, PART_MIN), (1_000, PART_MIN), (9_000, PART_MIN),
    ],
)  # fmt: skip
def test_the_part_falls_in_a_line_to_the_least(used_mb: int, part: float) -> None:
    assert room_part(used_mb * MIB, LIMIT) == pytest.approx(part)


def test_without_a_source_all_of_a_bound_is_there() -> None:
    room = ProcessRoom()
    room.measure()
    assert not room.is_short
    assert room.of(7) == 7


def test_what_is_fixed_stays_of_a_bound() -> None:
    room = ProcessRoom(Process(875))
    room.measure()
    assert room.of(100) == 50
    assert room.of(100, 40) == 70
    assert room.of(100, 120) == 120


def test_a_shortage_is_logged_once_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    process = Process(820)
    room = ProcessRoom(process)
    for process.used_mb in (820, 900, 790, 810, 740, 740, 860):
        room.measure()
    assert caplog.messages == [
        "the process takes 820 MiB of the 1,000 that it may (headgateMemoryLimitMB, or the limit "
        "of its control group): from 80 to 95 % clients get less and less of "
        "headgateClientMemoryMB and headgateHttpMemoryMB, at last a 16th",
        "the process takes 740 MiB of the 1,000 that it may: clients have all of theirs again",
        "the process takes 860 MiB of the 1,000 that it may (headgateMemoryLimitMB, or the limit "
        "of its control group): from 80 to 95 % clients get less and less of "
        "headgateClientMemoryMB and headgateHttpMemoryMB, at last a 16th",
    ]


class Scene:
    """Clients beside a process that takes more than they are charged with."""

    def __init__(self, *held_mb: int) -> None:
        self.process, self.clock = Process(), Clock()
        self.room = ProcessRoom(self.process)
        self.memory = ClientMemory(MAX, self.clock, room=self.room)
        self.peers = [Peer(f"/client:{number}", f"role-{number}") for number in range(len(held_mb))]
        for peer, mb in zip(self.peers, held_mb, strict=True):
            peer.held = held(mb * MIB)

    def measure(self, used_mb: int, at_s: int) -> list[bool]:
        """Which clients are still connected."""
        self.process.used_mb, self.clock.now_ns = used_mb, at_s * 1_000_000_000
        measure(self.memory, self.peers)
        return [peer.is_open for peer in self.peers]


def test_those_that_hold_most_are_closed_before_the_process_is_at_its_limit() -> None:
    scene = Scene(40, 4, 4)
    assert scene.measure(700, 0) == scene.measure(700, 60) == [True, True, True]
    scene.measure(920, 61)  # 32 MiB of the 160
    assert [peer.done for peer in scene.peers] == [["pause"], [], []]
    assert scene.measure(920, 63) == [False, True, True]
    assert scene.measure(920, 70) == [False, True, True]
    assert scene.measure(700, 71) == [False, True, True]
    assert scene.memory.figures() == (MAX, 0, 1)


def test_whatever_takes_the_memory_small_clients_stay() -> None:
    """Idle connections take what they take, so they leave the part of the rest to the others."""
    scene = Scene(*[0] * 600, 2, 2)
    for at_s in range(10):
        assert all(scene.measure(2_000, at_s))
    rest_bytes = MAX - 602 * CONNECTION_BYTES
    assert scene.memory.bytes_max == 602 * CONNECTION_BYTES + int(PART_MIN * rest_bytes)


def test_near_the_limit_it_is_measured_more_often_and_no_buffer_grows_for_speed() -> None:
    scene = Scene(1)
    scene.measure(590, 0)
    period_s = scene.memory.period_s
    scene.measure(600, 1)
    assert scene.memory.period_s < period_s
    assert scene.memory.has_room_to_spare()
    scene.measure(810, 2)
    assert scene.memory.period_s < period_s
    assert not scene.memory.has_room_to_spare()


def test_large_newcomers_are_refused_near_the_limit() -> None:
    scene = Scene(8)
    scene.measure(700, 0)
    scene.memory.admit(NOBODY, 64 * KIB, 0)
    scene.measure(950, 1)
    with pytest.raises(NotAllowedError, match=r"^Clients hold 8,413,184 of 10,508,800 bytes"):
        scene.memory.admit(NOBODY, MIB, 0)


def test_small_newcomers_of_roles_that_hold_little_are_taken_while_the_largest_are_closed() -> None:
    scene = Scene(60, 60, 60)
    scene.measure(700, 0)
    scene.measure(900, 1)  # 53 MiB of the 160 are left
    little, largest = Peer("/other:1", "other"), scene.peers[0]
    assert scene.memory.admit(little.identity, 100, 0) > 0
    for identity, size_bytes in ((largest.identity, 100), (little.identity, 2 * KIB)):
        with pytest.raises(NotAllowedError):
            scene.memory.admit(identity, size_bytes, 0)


def test_near_the_end_of_the_room_small_newcomers_have_no_more_than_others() -> None:
    """Thousands of them on many connections took 40 MB beyond, in the seconds until the first were
    closed."""
    scene = Scene(60, 60, 60)
    scene.measure(700, 0)
    scene.measure(950, 1)
    with pytest.raises(NotAllowedError):
        scene.memory.admit(Peer("/other:1", "other").identity, 100, 0)


def test_requests_have_the_same_part_of_their_bound() -> None:
    class Connection:
        reason = ""

        def end_for_memory(self, reason: str) -> None:
            self.reason = reason

    process, one, other = Process(875), Connection(), Connection()
    room = ProcessRoom(process)
    memory = HttpMemory.of(Settings(headgateHttpMemoryMB=64), room)
    memory.hold(one, 20 * MIB, "/10.0.0.1:5000")
    memory.hold(other, 13 * MIB, "/10.0.0.2:5000")
    assert not one.reason
    room.measure()
    memory.hold(other, 14 * MIB, "/10.0.0.2:5000")
    assert "more than 33554432 (headgateHttpMemoryMB)" in one.reason
    assert not other.reason


PROCESS = Process(100)


@played(process=PROCESS, settings={"headgateClientMemoryMB": "1"})
async def test_a_broker_at_its_limit_has_few_connections_and_serves_those_it_has(
    world: World,
) -> None:
    """The least part of 32 connections, which fit into three quarters of 1 MiB, are two."""
    before = [await world.connect() for _ in range(2)]
    PROCESS.used_mb = 990
    await asyncio.sleep(2)
    with pytest.raises(RefusedError, match="Reached the maximum number of connections"):
        await world.connect()
    await before[0].producer(TOPIC)
    before[1].abort()
    await asyncio.sleep(1)
    await world.connect()
    PROCESS.used_mb = 100
    await asyncio.sleep(2)
    later = await world.connect()
    await later.producer(TOPIC, name="later")


LARGE = Process(100)


@played(process=LARGE)
async def test_at_the_limit_the_largest_tenants_make_no_more_topics_and_subscriptions(
    world: World,
) -> None:
    """These stay when their clients leave: three roles had brought the process to 1,039 MiB of
    1,024 in 65 s, charged to nobody."""
    client = await world.connect()
    for name in ("one", "two"):
        await (await client.subscribe(TOPIC, name)).close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_part, "KEPT_MIN", 2)
        LARGE.used_mb = 960
        await asyncio.sleep(2)
        with pytest.raises(RefusedError, match="tenant public is one of those with the most"):
            await client.subscribe(TOPIC, "three")
        with pytest.raises(RefusedError, match="tenant public is one of those with the most"):
            await client.producer(TOPIC + "-2")
        await client.producer(TOPIC)
        await client.subscribe(TOPIC, "two")
        LARGE.used_mb = 100
        await asyncio.sleep(2)
        await client.subscribe(TOPIC, "three")
        await client.producer(TOPIC + "-2")


STORING = Process(100)


@played(process=STORING)
async def test_at_the_limit_tenants_store_less(world: World) -> None:
    """Properties, grants and schemas stay, too. With them three tenants had brought the process to
    1,318 MiB of 1,024."""
    catalog, engine = world.broker.catalog, world.broker.engine
    STORING.used_mb = 960
    await asyncio.sleep(2)
    assert catalog.memory_room.part == engine.memory_part.part == PART_MIN
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headgate.metadata.property_totals.PROPERTIES_OF_TENANT_BYTES_MAX", 2_000)
        with pytest.raises(RefusalError, match="because the broker is near the limit"):
            catalog.plan_namespace_properties(NamespaceName("public", "default"), {"k": "v"})


WIDE = Process(100)
WIDE.limit_bytes = 4 * GIB


@played(process=WIDE)
async def test_what_others_hold_keeps_nobody_from_storing(world: World) -> None:
    """A tenant with thousands of topics has half a million places in the log for its messages of an
    hour: 64 MB, where the others had brought the process to 4,000 of 4,096."""
    producer = await (await world.connect()).producer(TOPIC)
    (stored,) = world.broker.engine.tenant_storage.tenants()
    stored.runs += 2 * RUNS_MIN
    WIDE.used_mb = 4_000
    await asyncio.sleep(2)
    await producer.send(b"one")
    stored.runs += 3 * RUNS_MIN
    await asyncio.sleep(2)
    assert stored.is_held
    stored.runs -= 5 * RUNS_MIN
