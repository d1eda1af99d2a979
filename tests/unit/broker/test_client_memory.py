"""Who is slowed and who is closed when all connections together hold too much."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.identity import NOBODY, Identity
from headgate.base.positions import EARLIEST
from headgate.base.units import KIB, MIB, NS_PER_S
from headgate.broker.client_memory import (
    CLIENT_MEMORY_BYTES_MIN,
    FAR_SHARE,
    GRACE_FAR_NS,
    GRACE_NS,
    HURRY_PERIOD_S,
    PERIOD_S,
    SLOWED_PER_STEP,
    SMALL_HOLDER_BYTES,
    STEP_UNITS,
    ClientMemory,
    client_memory_bytes,
)
from headgate.broker.connection.connection_limits import LAST_PART
from headgate.broker.held_memory import (
    CONNECTION_BYTES,
    PENDING_ENTRY_BYTES,
    READER_BYTES,
    TLS_UNITS,
    HeldMemory,
)
from headgate.engine.errors import NotAllowedError
from headgate.testing import ConnectionLostError, World
from headgate.testing.client import SimClient
from headgate.testing.errors import RefusedError
from headgate.testing.producer import SimProducer
from headgate.wire import client as frames
from headgate.wire.codes import ServerError, SubscriptionType
from tests.unit.broker.memory_rig import MAX, Clock, Peer, Rig, held, measure
from tests.unit.broker.playing import TOPIC, played


def test_below_the_bound_nobody_is_slowed(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    assert rig.measure(60, 20, 9) == [[], [], []]
    assert caplog.messages == []
    assert rig.measure(60, 20, 15) == rig.measure(60, 20, 15) == [[], [], []]
    assert caplog.messages == [
        "clients hold 95.1 MiB of the 100.0 MiB that they may hold; /a:1 holds most: "
        f"connections 24,576, unsent {60 * MIB:,}"
    ], "once"
    rig.measure(0, 0, 0)
    rig.measure(60, 20, 15)
    assert len(caplog.messages) == 2


def test_above_it_those_that_hold_most_are_slowed_until_the_others_have_room() -> None:
    rig = Rig()
    assert rig.measure(20, 50, 31) == [[], ["pause"], []]
    assert rig.measure(20, 50, 31, at_s=1) == [[], [], []], "the others hold 51"
    assert rig.measure(20, 26, 31, at_s=2) == [[], [], []], "more than half of what it held"


def test_a_slowed_connection_is_read_again_once_it_holds_half() -> None:
    rig = Rig()
    rig.measure(20, 50, 31)
    assert rig.measure(20, 25, 31, at_s=1) == [[], ["resume"], []]
    rig.measure(20, 50, 31, at_s=2)
    assert rig.memory.figures()[1] == 1
    assert rig.measure(10, 40, 24, at_s=3) == [[], ["resume"], []], "there is room for all"
    assert rig.memory.figures()[1] == 0


def test_a_slowed_connection_is_read_again_after_a_while_within_the_bound() -> None:
    rig = Rig()
    rig.measure(20, 50, 31)
    assert rig.measure(20, 40, 31, at_s=4) == [[], [], []]
    assert rig.measure(20, 40, 31, at_s=5) == [[], ["resume"], []], "else it waited forever"


def test_one_that_does_not_shrink_is_closed_with_the_reason() -> None:
    rig = Rig()
    rig.measure(20, 50, 31)
    assert rig.measure(20, 50, 31, at_s=GRACE_NS / NS_PER_S - 1) == [[], [], []]
    _, (reason,), _ = rig.measure(20, 50, 31, at_s=GRACE_NS / NS_PER_S)
    size = 50 * MIB
    assert reason == (
        f"this connection holds {size + CONNECTION_BYTES:,} bytes (connections 24,576, unsent "
        f"{size:,}), and all together 101.1 MiB of the 100.0 MiB that they may hold"
    )
    assert rig.measure(20, 50, 31, at_s=9) == [[], [], []]
    assert rig.memory.figures() == (MAX, 0, 1)
    assert rig.memory.held.total == 51 * MIB + 2 * CONNECTION_BYTES


def test_far_beyond_the_bound_those_that_hold_most_have_less_time() -> None:
    rig = Rig()
    assert rig.measure(10, 60, 61) == [[], [], ["pause"]]
    assert rig.measure(10, 60, 61, at_s=0.9) == [[], [], []]
    done = rig.measure(10, 60, 61, at_s=GRACE_FAR_NS / NS_PER_S)
    assert [len(each) for each in done] == [0, 0, 1], "closed: the others have room"
    assert rig.memory.figures()[2] == 1


def test_idle_connections_are_neither_slowed_nor_closed() -> None:
    memory = ClientMemory(CONNECTION_BYTES, Clock())
    peers = [Peer("/a:1"), Peer("/b:1"), Peer("/c:1")]
    for peer in peers:
        peer.held = held()
    measure(memory, peers)
    assert [peer.done for peer in peers] == [[], [], []]
    measure(memory, [])
    assert memory.held == HeldMemory()


def one(memory: HeldMemory) -> list[Peer]:
    peer = Peer("/a:1")
    peer.held = memory
    return [peer]


def test_a_description_is_refused_when_all_hold_too_much() -> None:
    memory = ClientMemory(MIB, Clock())
    assert memory.admit(NOBODY, 64 * KIB, 0) == 129 * KIB
    for _ in range(6):
        memory.admit(NOBODY, 64 * KIB, 0)
    with pytest.raises(NotAllowedError, match=r"^Clients hold 924,672 of 1,048,576 bytes"):
        memory.admit(NOBODY, 64 * KIB, 0)
    memory.admit(NOBODY, KIB, 20)
    measure(memory, one(held(descriptions=100 * KIB)))
    memory.admit(NOBODY, 64 * KIB, 0)


def test_who_fills_nine_tenths_shuts_out_large_newcomers_only() -> None:
    memory = ClientMemory(MIB, Clock())
    measure(memory, one(held(descriptions=900 * KIB)))
    with pytest.raises(NotAllowedError):
        memory.admit(NOBODY, KIB, 16)
    with pytest.raises(NotAllowedError):
        memory.admit(NOBODY, 2 * KIB, 0)
    memory.admit(NOBODY, KIB, 15)
    measure(memory, one(held(descriptions=MIB)))
    with pytest.raises(NotAllowedError):
        memory.admit(NOBODY, KIB, 0)


def test_many_small_connections_of_a_role_are_closed_before_a_large_one_of_another() -> None:
    rig = Rig()
    crowd = [Peer(f"/crowd:{number}", "crowd") for number in range(100)]
    few = Peer("/few:1", "few")
    for peer in crowd:
        peer.held = held(MIB)
    few.held = held(10 * MIB)
    rig.peers = [few, *crowd]
    rig.measure_again()
    done = rig.measure_again(1)
    assert done[0] == []
    rig.measure_again(1 + GRACE_NS / NS_PER_S)
    assert few.is_open
    assert any(not peer.is_open for peer in crowd)


def test_a_role_that_holds_more_than_the_average_pays_for_no_other_that_holds_nearly_all() -> None:
    """The average falls with each role that holds next to nothing: a service with 8 MB was closed
    first, again and again, while one role held 100 MB on very many connections."""
    rig = Rig()
    crowd = [Peer(f"/crowd:{number}", "crowd") for number in range(91)]
    service = [Peer(f"/service:{number}", "service") for number in range(2)]
    idle = [Peer(f"/idle:{number}", f"idle {number}") for number in range(30)]
    rig.peers = [*service, *idle, *crowd]
    for factor in (MIB // 2, MIB):
        for peers, size in ((crowd, 1), (service, 4)):
            for peer in peers:
                peer.held = held(size * factor)
        for peer in idle:
            peer.held = held(1)
        rig.measure_again()
    assert rig.memory.may_grow(service[0], 16 * KIB)
    assert not rig.memory.may_grow(crowd[0], 16 * KIB)
    for at_s in (1.0, 1 + GRACE_NS / NS_PER_S):
        rig.measure_again(at_s)
        assert [peer for peer in (*service, *idle) if not peer.is_open or peer.done] == []
    assert any(not peer.is_open for peer in crowd)


def test_of_two_large_roles_the_larger_one_makes_room_first() -> None:
    rig = Rig()
    crowd = [Peer(f"/crowd:{number}", "crowd") for number in range(70)]
    service = Peer("/service:1", "service")
    idle = [Peer(f"/idle:{number}", f"idle {number}") for number in range(5)]
    for peer in idle:
        peer.held = held(1)
    rig.peers = [service, *idle, *crowd]
    for factor in (MIB // 2, MIB):
        for peer in crowd:
            peer.held = held(factor)
        service.held = held(50 * factor)
        rig.measure_again()
    rig.measure_again(1)
    rig.measure_again(1 + GRACE_NS / NS_PER_S)
    assert service.is_open
    assert any(not peer.is_open for peer in crowd)


def test_newcomers_of_roles_that_hold_little_are_taken_when_others_hold_all() -> None:
    memory = ClientMemory(MIB, Clock())
    crowd = [Peer(f"/crowd:{number}", "crowd") for number in range(10)]
    for peer in crowd:
        peer.held = HeldMemory(0, 0, 0, MIB // 10)
    measure(memory, crowd)
    with pytest.raises(NotAllowedError):
        memory.admit(Identity("crowd"), KIB, 0)
    for _ in range(10):
        memory.admit(Identity("few"), KIB, 100)
    with pytest.raises(NotAllowedError):
        memory.admit(Identity("few"), 64 * KIB, 0)


def test_a_client_of_a_role_that_holds_little_may_send_when_others_hold_all() -> None:
    memory = ClientMemory(MIB, Clock())
    crowd, few = Peer("/crowd:1", "crowd"), Peer("/few:1", "few")
    crowd.held, few.held = HeldMemory(0, 0, 0, MIB), HeldMemory(0, 0, 0, 32 * KIB)
    measure(memory, [crowd, few])
    assert memory.is_over
    assert memory.may_grow(few, 16 * KIB)
    memory.slow(few)
    assert few.done == []
    assert not memory.may_grow(crowd, 16 * KIB)
    memory.charge(MIB // 10)
    assert not memory.may_grow(few, 16 * KIB), "far too much is too much for all"


def test_who_was_slowed_first_is_not_closed_in_the_stead_of_who_holds_more() -> None:
    rig = Rig()
    rig.measure(20, 20, 20)
    rig.memory.charge(41 * MIB)
    rig.memory.slow(rig.peers[0])
    assert rig.measure(21, 60, 20, at_s=4.5) == [[], ["pause"], []]
    assert rig.measure(21, 60, 20, at_s=6) == [[], [], []], "the first waits for 6 s"
    done = rig.measure(21, 60, 20, at_s=9.5)
    assert [len(each) for each in done] == [0, 1, 0]
    assert rig.measure(21, 0, 20, at_s=10) == [["resume"], [], []]


def test_who_acknowledges_is_read_and_closed_if_that_does_not_help() -> None:
    rig = Rig()
    first, second, third = rig.peers
    first.held = held(unsent=5 * MIB, pending=90 * MIB)
    second.held, third.held = held(unsent=6 * MIB), held()
    assert rig.measure_again() == [[], [], []], "its acknowledgements make room"
    assert rig.memory.figures()[1] == 1
    first.held = held(pending=40 * MIB)
    assert rig.measure_again(at_s=1) == [[], [], []]
    assert rig.memory.figures()[1] == 0
    first.held = held(pending=101 * MIB)
    rig.measure_again(at_s=2)
    (reason,), *_ = rig.measure_again(at_s=7)
    assert f"pending {101 * MIB:,}" in reason


def test_connections_that_are_closing_count_and_end_first() -> None:
    rig = Rig()
    rig.closing.append(Peer("/d:1"))
    rig.closing[0].held = held(unsent=30 * MIB)
    assert rig.measure(20, 20, 20) == [[], [], []]
    assert rig.memory.held.unsent == 90 * MIB
    assert rig.closing[0].done == []
    rig.measure(20, 25, 30, at_s=1)
    assert rig.closing[0].done == ["abort"]
    assert [peer.is_open for peer in rig.peers] == [True] * 3


def test_connections_over_tls_that_are_closing_count_as_open_ones() -> None:
    """They counted as plain ones, and strangers can have thousands of them close at any time."""
    memory, closing = ClientMemory(MAX, Clock()), [Peer("/d:1")]
    closing[0].memory_units = TLS_UNITS
    list(memory.measure([], closing))
    assert memory.held.connections == TLS_UNITS * CONNECTION_BYTES


def test_connections_alone_take_three_quarters() -> None:
    assert ClientMemory(128 * MIB, Clock()).connections_max() == 4_096


def test_connections_whose_address_is_not_known_may_hold_the_same() -> None:
    """A peer that is gone already has no address."""
    memory, peers = ClientMemory(MAX, Clock()), [Peer(""), Peer(""), Peer("")]
    for peer in peers:
        peer.held = held(MAX // 2)
    measure(memory, peers)
    assert [peer.done for peer in peers] == [["pause"], ["pause"], []]


def test_ten_thousand_are_measured_in_short_steps() -> None:
    memory = ClientMemory(MAX, Clock())
    peers = [Peer(f"/a:{port}") for port in range(10_000)]
    for peer in peers:
        peer.held = held(unsent=64 * KIB)
    units = list(memory.measure(peers, []))
    assert max(units) <= 64
    assert sum(units) >= 10_000
    assert memory.figures()[1] == 1_000, "the others follow"
    memory.bytes_max_set = 10_000 * MIB
    assert max(memory.measure(peers, [])) <= 64
    assert memory.figures()[1] == 0
    assert {tuple(peer.done) for peer in peers} == {(), ("pause", "resume")}


def test_thousands_that_are_closing_are_measured_in_short_steps() -> None:
    memory = ClientMemory(MAX, Clock())
    closing = [Peer(f"/a:{port}") for port in range(10_000)]
    steps = list(memory.measure([], closing))
    assert len(steps) >= len(closing) // SLOWED_PER_STEP
    assert max(steps) <= 64
    assert memory.held.connections == len(closing) * CONNECTION_BYTES


class Watched(Peer):
    """A connection that counts each look at any of them."""

    looked_at = 0

    @property  # type: ignore[override]
    def is_open(self) -> bool:
        Watched.looked_at += 1
        return True

    @is_open.setter
    def is_open(self, is_open: bool) -> None: ...


def test_thousands_that_stay_slowed_are_looked_at_in_short_steps() -> None:
    memory = ClientMemory(MAX, Clock())
    peers: list[Peer] = [Watched(f"/a:{port}") for port in range(10_000)]
    memory.charge(MAX + 1)
    for peer in peers:
        peer.held = held(unsent=64 * KIB)
        memory.slow(peer)
    assert memory.figures()[1] == 10_000
    began = before = Watched.looked_at
    most = 0
    for _ in memory.measure(peers, []):
        most, before = max(most, Watched.looked_at - before), Watched.looked_at
    assert most <= SLOWED_PER_STEP + STEP_UNITS
    assert Watched.looked_at - began >= 20_000, "all, and once more those that are slowed"


def test_who_grows_beyond_the_bound_is_slowed_before_the_next_measurement() -> None:
    rig = Rig()
    rig.measure(20, 20, 20)
    first, second, _ = rig.peers
    rig.memory.charge(30 * MIB)
    rig.memory.slow(first)
    assert first.done == []
    for _ in range(2):
        rig.memory.charge(11 * MIB)
        rig.memory.slow(second)
    assert second.done == ["pause"]
    assert rig.measure(50, 25, 20) == [[], [], []]
    assert rig.measure(30, 25, 20, at_s=1) == [[], [], []], "all hold more than 75 MiB"
    assert rig.measure(29, 25, 20, at_s=2) == [[], ["resume"], []]


def test_a_connection_gives_back_an_empty_buffer_instead_of_being_slowed() -> None:
    rig = Rig()
    rig.measure(20, 20, 20)

    class Buffered(Peer):
        """It holds 24 KiB, most of it as an empty buffer."""

        def held_memory(self, *, is_scarce: bool) -> HeldMemory:
            return held(unsent=KIB if is_scarce else 24 * KIB)

    neighbour = Buffered("/d:1")
    rig.memory.charge(90 * MIB)
    rig.memory.slow(neighbour)
    assert neighbour.done == []
    rig.memory.slow(rig.peers[0])
    assert rig.peers[0].done == ["pause"]


def test_far_beyond_the_bound_nothing_grows() -> None:
    rig = Rig()
    rig.measure(40, 40, 20)
    assert not rig.memory.is_far_over
    rig.memory.charge(9 * MIB)
    assert not rig.memory.is_far_over
    rig.memory.charge(MIB)
    assert rig.memory.is_far_over
    rig.measure(40, 40, 20)
    assert not rig.memory.is_far_over, "what was charged was not there any more"


def test_what_grows_while_all_are_measured_is_not_forgotten() -> None:
    """A walk over ten thousand takes many turns: what was measured early may have grown since."""
    rig = Rig()
    steps = rig.memory.measure(rig.peers, [])
    rig.memory.charge(5 * MIB)
    assert not list(steps), "so few need no step of their own"
    peers = [Peer(f"/a:{port}") for port in range(100)]
    for peer in peers:
        peer.held = held()
    steps = rig.memory.measure(peers, [])
    next(steps)
    rig.memory.charge(112 * MIB)
    for _ in steps:
        pass
    assert rig.memory.is_far_over
    measure(rig.memory, peers)
    assert not rig.memory.is_over


def test_those_that_are_read_again_do_not_fill_together_what_is_free_for_few() -> None:
    rig = Rig()
    rig.measure(33.5, 33.5, 33.5)
    for peer in rig.peers:
        rig.memory.charge(20 * MIB)
        rig.memory.slow(peer)
    memory = rig.memory
    assert memory.figures()[1] == 3

    class Growing(Peer):
        """It takes 30 MiB as soon as it is read."""

        def resume_for_memory(self) -> None:
            super().resume_for_memory()
            memory.charge(30 * MIB)

    for peer in rig.peers:
        peer.__class__ = Growing
    assert rig.measure(24, 24, 24, at_s=1) == [[], [], ["resume"]], "it was slowed first"
    assert rig.measure(24, 24, 50, at_s=2) == [[], [], []], "there is no room for a second"
    assert rig.measure(24, 24, 20, at_s=3) == [["resume"], [], []]


def test_a_small_connection_is_not_slowed_while_others_fill_memory() -> None:
    rig = Rig()
    rig.measure(60, 60, 0)
    small = rig.peers[2]
    small.held = HeldMemory(CONNECTION_BYTES, SMALL_HOLDER_BYTES)
    rig.memory.slow(small)
    assert small.done == []
    small.held = HeldMemory(CONNECTION_BYTES, SMALL_HOLDER_BYTES + 1)
    rig.memory.slow(small)
    assert small.done == ["pause"]


def test_much_memory_is_measured_more_often() -> None:
    memory = ClientMemory(MAX, Clock())
    assert memory.period_s == PERIOD_S
    measure(memory, one(held(51 * MIB)))
    assert memory.period_s == HURRY_PERIOD_S
    peers = one(held(MIB))
    measure(memory, peers)
    assert peers[0].is_scarce, "it gives back empty buffers"
    measure(memory, peers)
    assert not peers[0].is_scarce


def test_the_bound_by_setting_and_memory() -> None:
    assert client_memory_bytes(3, 64 * MIB) == 3 * MIB
    assert client_memory_bytes(0, 64 * MIB) == CLIENT_MEMORY_BYTES_MIN
    assert client_memory_bytes(0, 4_000 * MIB) == 1_000 * MIB


async def stop_reading(world: World, pings: int) -> SimClient:
    """A client that sends PINGs and reads no answer."""
    client = await world.connect()
    client.transport.pause_reading()
    client.write(frames.ping() * pings)
    return client


@played(settings={"headgateClientMemoryMB": "1"})
async def test_those_that_ping_and_do_not_read_go_and_their_neighbour_stays(world: World) -> None:
    neighbour = await world.connect()
    producer = await neighbour.producer(TOPIC)
    floods = [await stop_reading(world, 15_000) for _ in range(7)]
    memory = world.broker.client_memory
    for _ in range(20):
        assert await producer.send(b"x")
        await asyncio.sleep(1)
        assert memory.held.total <= FAR_SHARE * MIB
    assert memory.closed_count
    assert neighbour.is_open
    for flood in floods:
        flood.abort()
    await asyncio.sleep(3)
    assert memory.held.beyond_idle < 64 * KIB
    await (await world.connect()).producer(TOPIC)


@played(settings={"headgateClientMemoryMB": "1"})
async def test_half_made_frames_stay_near_the_bound_also_between_two_measurements(
    world: World,
) -> None:
    """All of them arrive within the second after a measurement: a connection takes the room for
    more before its bytes are read, and is not read if there is none."""
    neighbour = await world.connect()
    producer = await neighbour.producer(TOPIC)
    memory = world.broker.client_memory
    head = (1_000 * KIB).to_bytes(4) + (16).to_bytes(4)
    torn = [await world.connect() for _ in range(12)]
    for client in torn:
        client.write(head + bytes(500 * KIB))
    highest = 0
    for _ in range(2_000):
        await asyncio.sleep(0.01)
        sizes = [one.held_memory(is_scarce=False).total for one in world.broker.connections]
        highest = max(highest, sum(sizes))
    assert highest <= MIB + 256 * KIB, "one buffer may double as the bound is reached"
    assert memory.closed_count
    assert await producer.send(b"x")
    assert neighbour.is_open


@played(settings={"headgateClientMemoryMB": "2"})
async def test_half_made_frames_that_all_arrive_at_once_stay_within_the_bound(
    world: World,
) -> None:
    """As on a broker that gets little of the processors: each poll finds all sockets readable, and
    what measures and closes has no turn."""
    memory = world.broker.client_memory
    torn = [await world.connect() for _ in range(40)]
    connections = list(world.broker.connections)
    head = (1_000 * KIB).to_bytes(4) + (16).to_bytes(4)
    for number in range(20):
        for connection in connections:
            if not connection.socket_paused:
                room = connection.get_buffer(-1)
                if not number:
                    room[: len(head)] = head
                connection.buffer_updated(len(room))
        await asyncio.sleep(0)
        held_bytes = sum(one.held_memory(is_scarce=False).total for one in connections)
        assert held_bytes <= 2 * MIB + 64 * KIB
    assert memory.is_over
    assert all(connection.socket_paused for connection in connections)
    for client in torn:
        client.abort()
    await asyncio.sleep(3)
    assert not memory.is_over


def test_a_buffer_grows_only_while_the_bound_is_not_passed() -> None:
    rig = Rig()
    rig.measure(40, 40, 19)
    first, second, small = rig.peers
    assert rig.memory.may_grow(first, 5 * MIB)
    rig.memory.charge(5 * MIB)
    for _ in range(2):
        assert not rig.memory.may_grow(second, 5 * MIB)
    assert second.done == ["pause"], "once"
    small.held = HeldMemory(CONNECTION_BYTES, SMALL_HOLDER_BYTES - KIB)
    assert rig.memory.may_grow(small, KIB), "it is not the cause"
    assert not rig.memory.may_grow(small, 2 * KIB)
    small.done.clear()
    rig.memory.charge(6 * MIB)
    assert not rig.memory.may_grow(rig.peers[2], KIB), "nobody far beyond the bound"


def test_one_that_acknowledges_may_grow_a_little_and_is_paused_beyond() -> None:
    rig = Rig()
    (peer, *_) = rig.peers
    peer.held = held(pending=101 * MIB)
    rig.measure_again()
    assert (peer.done, rig.memory.figures()[1]) == ([], 1)
    assert rig.memory.may_grow(peer, KIB)
    rig.memory.charge(10 * MIB)
    assert not rig.memory.may_grow(peer, KIB)
    assert peer.done == ["pause"]


def test_what_is_given_back_counts_at_once_unless_a_walk_may_have_seen_it() -> None:
    rig = Rig()
    rig.measure(40, 40, 19)
    rig.memory.charge(5 * MIB)
    assert rig.memory.is_over
    rig.memory.charge(-5 * MIB)
    assert not rig.memory.is_over
    peers = [Peer(f"/a:{port}") for port in range(100)]
    for peer in peers:
        peer.held = held(MIB)
    steps = rig.memory.measure(peers, [])
    next(steps)
    rig.memory.charge(-5 * MIB)
    for _ in steps:
        pass
    assert rig.memory.is_over


@played(settings={"headgateClientMemoryMB": "1"})
async def test_one_that_leaves_answers_gets_no_more_of_them_while_there_is_no_room(
    world: World,
) -> None:
    memory = world.broker.client_memory
    client = await stop_reading(world, 15_000)
    await asyncio.sleep(0.1)
    (server,) = world.broker.connections
    memory.charge(2 * MIB)
    before = server.unsent_bytes()
    client.write(frames.ping() * 500)
    await asyncio.sleep(0.1)
    assert server.unsent_bytes() <= before + 64, "what arrived meanwhile waits"
    client.transport.resume_reading()
    await asyncio.sleep(1)
    assert server.unsent_bytes() == 0
    assert not server.socket_paused


@played()
async def test_a_slowed_connection_carries_out_what_arrived_and_reads_no_more(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    (server,) = world.broker.connections
    flood = frames.ping() * 2_000  # more than one turn takes
    client.write(flood)
    await asyncio.sleep(0)
    server.pause_for_memory()
    await asyncio.sleep(1)
    assert server.held_memory(is_scarce=True).received == 0
    late = asyncio.ensure_future(producer.send(b"x"))
    await asyncio.sleep(1)
    assert server.socket_paused
    assert not late.done()
    server.resume_for_memory()
    assert await late
    assert not server.socket_paused


@played(settings={"headgateClientMemoryMB": "1"})
async def test_what_closed_producers_and_connections_held_is_free_again(world: World) -> None:
    memory = world.broker.client_memory
    client = await world.connect()
    name = "n" * 500
    attempts = (client.producer(TOPIC, name=f"{name}{index}") for index in range(900))
    found = await asyncio.gather(*attempts, return_exceptions=True)
    producers = [one for one in found if isinstance(one, SimProducer)]
    refused = [one for one in found if isinstance(one, RefusedError)]
    assert {error.code for error in refused} == {ServerError.NOT_ALLOWED_ERROR}
    assert len(producers) + len(refused) == 900
    assert 300 < len(producers) < 600
    await asyncio.sleep(2)
    assert memory.held.descriptions > 850 * KIB
    for producer in producers[:300]:
        await producer.close()
    await asyncio.sleep(10)
    await client.producer(TOPIC, name="another")
    await asyncio.sleep(2)
    assert memory.held.descriptions < 600 * KIB
    client.abort()
    with pytest.raises(ConnectionLostError):
        await client.producer(TOPIC)
    await asyncio.sleep(2)
    assert memory.held == HeldMemory()


@played(
    settings={
        "headgateClientMemoryMB": "1",
        "maxUnackedMessagesPerConsumer": "0",
        "maxUnackedMessagesPerSubscription": "0",
    }
)
async def test_a_consumer_that_acknowledges_nothing_is_closed_in_the_end(world: World) -> None:
    memory = world.broker.client_memory
    greedy = await world.connect()
    consumer = await greedy.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    producer = await (await world.connect()).producer(TOPIC)
    consumer.flow(20_000)
    sent = 0
    while greedy.is_open:
        await asyncio.gather(*(producer.send(b"x") for _ in range(200)))
        await asyncio.sleep(0.1)
        sent += 200
        assert sent < 20_000
        assert memory.held.pending <= sent * PENDING_ENTRY_BYTES
    assert memory.closed_count == 1
    await asyncio.sleep(2)
    assert memory.held.pending == 0
    assert await producer.send(b"last")


@played()
async def test_a_reader_is_charged_with_its_subscription(world: World) -> None:
    memory = world.broker.client_memory
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    await asyncio.sleep(2)
    of_consumer = memory.held.descriptions
    await client.subscribe(TOPIC, "r", durable=False)
    await asyncio.sleep(2)
    assert memory.held.descriptions - of_consumer == pytest.approx(
        of_consumer + READER_BYTES, abs=9
    )


@played(settings={"headgateClientMemoryMB": "1"})
async def test_what_others_gave_back_is_charged_to_the_consumers_that_stay(world: World) -> None:
    memory, sent = world.broker.client_memory, 3_000
    producer = await (await world.connect()).producer(TOPIC)
    for _ in range(sent // 500):
        await asyncio.gather(*(producer.send(b"x") for _ in range(500)))
    shared = SubscriptionType.SHARED
    staying, leaver = await world.connect(), await world.connect()
    await staying.subscribe(TOPIC, "s", kind=shared, queue_size=0)  # it asks for nothing
    await leaver.subscribe(TOPIC, "s", kind=shared, queue_size=sent)
    await asyncio.sleep(1)
    leaver.abort()
    await asyncio.sleep(2)
    assert memory.held.pending > sent * PENDING_ENTRY_BYTES


@played()
async def test_what_a_reader_acknowledges_out_of_order_is_charged(world: World) -> None:
    memory = world.broker.client_memory
    client = await world.connect()
    producer = await client.producer(TOPIC)
    positions = [await producer.send(b"x") for _ in range(3)]
    names = [f"r{number}" for number in range(20)]
    readers = [await client.reader(TOPIC, EARLIEST, name=name, queue_size=0) for name in names]
    await asyncio.sleep(2)
    before = memory.held.pending
    for reader in readers:
        reader.ack_nowait(positions[2])
    await asyncio.sleep(2)
    # Nobody else is: a reader's subscription ends with it, and no limit counts it.
    assert memory.held.pending - before >= 20 * 512
    client.abort()
    await asyncio.sleep(2)
    assert memory.held.pending == 0


@played(settings={"headgateClientMemoryMB": "1"})
async def test_idle_connections_leave_a_quarter_to_their_holdings(world: World) -> None:
    memory = world.broker.client_memory
    places = memory.connections_max()
    clients = [await world.connect() for _ in range(places - places // LAST_PART)]
    with pytest.raises(RefusedError, match="Reached the maximum number of connections"):
        await world.connect()
    await clients[0].producer(TOPIC)
    await asyncio.sleep(10)
    assert all(client.is_open for client in clients)
    clients[1].abort()
    await asyncio.sleep(1)
    await world.connect()


@played(settings={"headgateClientMemoryMB": "1"})
async def test_the_ledger_is_exact_and_ends_at_nothing(world: World) -> None:
    """Whatever clients do, in whatever order they end."""
    memory, broker = world.broker.client_memory, world.broker
    for number in range(12):
        client = await world.connect()
        if number % 2:
            await client.producer(TOPIC, name=f"p{number}" + "n" * 300)
        consumer = await client.subscribe(TOPIC, f"s{number}", kind=SubscriptionType.SHARED)
        consumer.flow(10)
        if number % 3 == 0:
            await consumer.close()
        if number % 4 == 0:
            await stop_reading(world, 3_000)
        if number % 5 == 0:
            client.abort()
    await asyncio.sleep(2)
    for connection in broker.connections:
        present = {("producer", id_) for id_ in connection.producers}
        present |= {("consumer", id_) for id_ in connection.consumers}
        assert connection.described_bytes.keys() == present
    sums = zip(
        *(connection.held_memory(is_scarce=False) for connection in broker.connections), strict=True
    )
    assert tuple(map(sum, sums)) == tuple(memory.held)
    for connection in list(broker.connections):
        connection.close()
    await asyncio.sleep(8)
    assert memory.held == HeldMemory()
    assert not broker.connections.closing
    assert memory.figures()[1] == 0
