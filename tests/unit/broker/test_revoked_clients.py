"""Revocations end connections within a second, in slices, and refuse new ones."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

from headgate.base.identity import Identity
from headgate.base.instants import iso_time
from headgate.base.units import MS_PER_S
from headgate.base.work_units import CONNECTION_ENDED, JOB_STEP_UNITS_MAX
from headgate.broker.connection.connection import Connection
from headgate.broker.revoked_clients import RevokedClients
from headgate.policy.setting_info import SettingError
from headgate.policy.settings import Settings
from headgate.security.provider import Principal
from headgate.security.revocation import Revocations
from headgate.testing import World
from headgate.testing.client import SimClient
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.test_policy_updates import set_dynamic

ROLES, TOKENS = "headgateRevokedRoles", "headgateRevokedTokenIds"


async def connected(world: World, identity: Identity) -> SimClient:
    """A client whose connection has an identity, as authentication gives it."""
    before = set(world.broker.connections)
    client = await world.connect()
    (connection,) = set(world.broker.connections) - before
    connection.identity = identity
    return client


@played()
async def test_a_revoked_role_is_disconnected_within_a_second(world: World) -> None:
    bad = await connected(world, Identity("bad"))
    through_proxy = await connected(world, Identity("proxy", "bad"))
    good = [await connected(world, Identity("good")), await world.connect()]
    producer = await bad.producer(TOPIC)
    await producer.send(b"x")
    await set_dynamic(world, ROLES, "worse, bad")
    await asyncio.sleep(1)
    assert [client.is_open for client in (bad, through_proxy, *good)] == [False, False, True, True]
    assert not world.broker.engine.topics[TOPIC].producers
    refused = world.broker.revoked_clients.why_refused
    assert refused(Principal("bad")) == "the role 'bad' is revoked"
    assert refused(Principal("proxy"), "bad") == "the role 'bad' is revoked"
    assert not refused(Principal("good"))
    # What is revoked no longer may connect again.
    await set_dynamic(world, ROLES, None)
    assert not refused(Principal("bad"))
    again = await connected(world, Identity("bad"))
    await asyncio.sleep(2)
    assert again.is_open


@played()
async def test_a_revocation_survives_a_restart(world: World) -> None:
    await set_dynamic(world, TOKENS, "t1")
    world.crash()
    await world.start()
    assert world.broker.revoked_clients.why_refused(Principal("a", token_id="t1"))


@played()
async def test_an_entry_lapses(world: World) -> None:
    until = iso_time(world.broker.engine.now_ms + 10 * MS_PER_S).split(".")[0] + "Z"
    await set_dynamic(world, ROLES, f"bad until {until}")
    assert world.broker.revoked_clients.why_refused(Principal("bad"))
    await asyncio.sleep(11)
    assert not world.broker.revoked_clients.why_refused(Principal("bad"))


@played()
async def test_a_setting_that_cannot_be_read_is_refused(world: World) -> None:
    dynamic = world.broker.dynamic
    for text in ("a until tomorrow", "x" * 20_000):
        with pytest.raises(SettingError, match=f"^{ROLES} is not allowed: "):
            dynamic.check(ROLES, text, {})
    dynamic.check(ROLES, "a until 2027-01-15T08:00:00Z", {})


@played()
async def test_the_entries_of_the_file_count_as_well(world: World) -> None:
    revoked = world.broker.revoked_clients
    clients = [await connected(world, Identity(role)) for role in ("a", "b", "c")]
    revoked.use_file(Revocations({"a": float("inf")}))
    await set_dynamic(world, ROLES, "b")
    await asyncio.sleep(1)
    assert [client.is_open for client in clients] == [False, False, True]
    revoked.use_file(Revocations({"c": float("inf")}))
    await asyncio.sleep(1)
    assert not clients[2].is_open
    assert not revoked.why_refused(Principal("a"))


@played()
async def test_a_sweep_without_a_change_looks_at_no_connection(world: World) -> None:
    await set_dynamic(world, ROLES, "bad")
    await asyncio.sleep(1)
    client = await connected(world, Identity("bad"))  # admitted although it is revoked
    await asyncio.sleep(2)
    assert client.is_open
    await set_dynamic(world, ROLES, "bad, worse")
    await asyncio.sleep(1)
    assert not client.is_open


def test_the_end_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    @played()
    async def story(world: World) -> None:
        for _ in range(3):
            await connected(world, Identity("bad"))
        await set_dynamic(world, ROLES, "bad")
        await asyncio.sleep(1)

    with caplog.at_level(logging.WARNING):
        story()
    (line,) = [record.getMessage() for record in caplog.records if "revoked" in record.msg]
    assert line.startswith("3 connections of revoked clients ended, the first /")
    assert line.endswith("the role 'bad' is revoked")


# 10,000 connections -------------------------------------------------------------------------------


@dataclass(eq=False)
class FakeConnection:
    token_id: str
    identity: Identity = field(default_factory=lambda: Identity("app"))
    address: str = "/127.0.0.1:1"
    is_open: bool = True

    def close(self) -> None:
        self.is_open = False


@played()
async def test_ten_thousand_connections_are_looked_at_in_slices(world: World) -> None:
    connections = [FakeConnection(f"t{number}") for number in range(10_000)]
    broker = world.broker
    settings = Settings()
    units: list[int] = []

    class Scheduler:
        def run(self, name: str, job_class: Any, steps: Any, owner: str) -> asyncio.Future[None]:
            return broker.work.run(name, job_class, watched(steps), owner)

    def watched(steps: Any) -> Any:
        for step in steps:
            units.append(step)
            yield step

    revoked = RevokedClients(
        settings, connections, Scheduler(), broker.engine,  # type: ignore[arg-type]
        lambda connection: [Principal(connection.identity.role, None, connection.token_id)],
    )  # fmt: skip
    await revoked.sweep()
    assert not units
    settings.headgateRevokedTokenIds = ",".join(f"t{number}" for number in range(0, 10_000, 10))
    await revoked.sweep()
    ended = [connection for connection in connections if not connection.is_open]
    assert len(ended) == 1_000
    assert max(units) <= JOB_STEP_UNITS_MAX + CONNECTION_ENDED
    assert len(units) > 100


@played()
async def test_what_is_revoked_during_a_sweep_is_found_by_the_next_one(world: World) -> None:
    connections = [FakeConnection(f"t{number}") for number in range(2_000)]
    settings = Settings(headgateRevokedTokenIds="other")
    revoked = RevokedClients(
        settings, connections, world.broker.work, world.broker.engine,
        lambda connection: [Principal(connection.identity.role, None, connection.token_id)],
    )  # fmt: skip
    sweep = asyncio.create_task(revoked.sweep())
    for _ in range(3):
        await asyncio.sleep(0)
    settings.headgateRevokedTokenIds = "t0"
    await sweep
    await revoked.sweep()
    assert [connection.is_open for connection in connections[:2]] == [False, True]


def test_a_connection_can_be_revoked() -> None:
    """The part of it that the sweep uses."""
    assert {"close"} <= set(dir(Connection))
