"""Connections are refused before the broker's own file descriptors run out."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.base.units import NS_PER_S
from headgate.broker.connection_admission import RESERVE_MAX, ConnectionAdmission
from headgate.testing import ConnectionLostError, World
from tests.unit.broker.playing import TOPIC, played


def transport(number: int | None) -> Any:
    """One of a socket with that descriptor; None for one in memory."""
    socket = None if number is None else SimpleNamespace(fileno=lambda: number)
    return SimpleNamespace(get_extra_info=lambda name: socket if name == "socket" else None)


def admission(limit: int | None) -> ConnectionAdmission:
    engine: Any = SimpleNamespace(now_ns=0)
    made = ConnectionAdmission(engine)
    made.set_limit(limit)
    return made


def test_a_quarter_of_few_and_a_bound_of_many_are_the_brokers_own() -> None:
    few = admission(256)
    assert [few.admit(transport(number)) for number in (191, 192, 255)] == [True, False, False]
    assert [few.admit(transport(number), web=True) for number in (223, 224)] == [True, False]
    assert few.refused_count == 3
    many = admission(100_000)
    assert many.admit(transport(100_000 - RESERVE_MAX - 1))
    assert not many.admit(transport(100_000 - RESERVE_MAX))


def test_few_are_accepted_at_once_where_descriptors_are_few() -> None:
    """What a port accepts beyond the bound of clients took the room of the web port."""
    assert [admission(limit).accepted_per_turn(16) for limit in (None, 100_000, 1_024, 256, 8)] == [
        16, 16, 16, 4, 1,
    ]  # fmt: skip


def test_without_a_limit_or_a_socket_no_connection_is_refused() -> None:
    assert admission(None).admit(transport(1 << 30))
    assert admission(8).admit(transport(None))


def test_refusals_are_logged_once_and_so_is_their_end(caplog: pytest.LogCaptureFixture) -> None:
    engine: Any = SimpleNamespace(now_ns=0)
    tight = ConnectionAdmission(engine)
    tight.set_limit(1_024)
    assert tight.sentence == ""
    for second in range(60):
        engine.now_ns = second * NS_PER_S
        assert not tight.admit(transport(1_000))
        tight.log_if_due()
    assert tight.sentence == (
        "connections are refused: all but 256 of 1,024 file descriptors (ulimit -n) are in use, "
        "and the broker needs those"
    )
    engine.now_ns += 9 * NS_PER_S
    tight.log_if_due()
    assert caplog.messages == [tight.sentence]
    engine.now_ns += NS_PER_S
    tight.log_if_due()
    assert tight.sentence == ""
    assert caplog.messages[1:] == [
        "connections are accepted again: 60 were refused, none of them in the last 10 s"
    ]


@played()
async def test_a_refused_connection_ends_at_once_and_others_go_on(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    before = world.broker.counts.connections_accepted
    world.broker.connection_admission.admit = lambda _, *, web=False: False  # type: ignore[method-assign]
    with pytest.raises(ConnectionLostError):
        await world.connect()
    await asyncio.sleep(1)
    assert world.broker.counts.connections_accepted == before
    assert len(world.broker.connections) == 1
    assert await producer.send(b"x")
