"""The parts of a node that follow from its settings. Whole nodes run in tests/service."""

from __future__ import annotations

import asyncio
import base64
import logging
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from headgate import __version__
from headgate.app.data_directory import DataDirectory
from headgate.app.node import (
    bounded_bytes,
    broker_info,
    exception_handler,
    ledger_settings,
    open_authentication,
    with_reason,
)
from headgate.app.ports import Urls
from headgate.base.errors import InvariantError
from headgate.base.units import MIB
from headgate.broker.held_memory import CONNECTION_BYTES, OBJECT_BYTES
from headgate.broker.info import BrokerInfo
from headgate.engine.memory_part import SUBSCRIPTION_BYTES, TOPIC_BYTES
from headgate.fs import MemFs
from headgate.ledger import LedgerSettings
from headgate.policy.settings import SETTINGS, Settings
from headgate.testing import World

MINUTE_MS = 60_000


def test_who_the_broker_is() -> None:
    directory = DataDirectory.open(MemFs(), "/data")
    ports: Any = SimpleNamespace(
        urls=Urls("pulsar://b1:6650", "", "pulsar+ssl://b1:6651", "https://b1:8443"),
        broker_id="b1:8443",
    )
    assert broker_info(ports, directory) == BrokerInfo(
        broker_id="b1:8443",
        broker_url="pulsar://b1:6650",
        web_url="",
        version=__version__,
        metadata_url="sqlite:/data/metadata.sqlite3",
        broker_url_tls="pulsar+ssl://b1:6651",
        web_url_tls="https://b1:8443",
    )


def test_what_clients_are_charged_with_is_no_growth_that_calls_for_a_collection() -> None:
    async def story(world: World) -> None:
        await world.start()
        before_bytes = bounded_bytes(world.broker)
        client = await world.connect()
        for _ in range(100):
            await client.producer("persistent://public/default/t")
        await asyncio.sleep(5)
        grown_bytes = bounded_bytes(world.broker) - before_bytes
        assert grown_bytes >= CONNECTION_BYTES + 100 * OBJECT_BYTES

    with World() as world:
        world.run(story(world))


def test_what_tenants_keep_is_no_growth_that_calls_for_a_collection() -> None:
    async def story(world: World) -> None:
        await world.start()
        client = await world.connect()
        before_bytes = bounded_bytes(world.broker)
        for number in range(20):
            topic = f"persistent://public/default/t{number}"
            consumer = await client.subscribe(topic, "s")
            await consumer.close()
        client.close()
        await asyncio.sleep(5)
        grown_bytes = bounded_bytes(world.broker) - before_bytes
        assert grown_bytes >= 20 * (TOPIC_BYTES + SUBSCRIPTION_BYTES)

    with World() as world:
        world.run(story(world))


def test_the_log_keeps_its_own_defaults() -> None:
    assert ledger_settings(Settings()) == LedgerSettings()


def test_the_log_follows_the_settings() -> None:
    settings = Settings(
        managedLedgerMaxSizePerLedgerMbytes=3, managedLedgerMaxLedgerRolloverTimeMinutes=2
    )
    found = ledger_settings(settings)
    assert found.ledger_bytes_max == 3 * MIB
    assert (found.ledger_age_ms_min, found.ledger_age_ms_max) == (2 * MINUTE_MS, 2 * MINUTE_MS)


@pytest.mark.parametrize("end", ["minimum", "maximum"])
def test_the_log_takes_all_that_the_settings_allow(end: str) -> None:
    settings = Settings()
    for name in (
        "managedLedgerMaxSizePerLedgerMbytes",
        "managedLedgerMaxLedgerRolloverTimeMinutes",
    ):
        setattr(settings, name, getattr(SETTINGS[name], end))
    ledger_settings(settings)


def test_only_a_broken_invariant_ends_the_process(caplog: pytest.LogCaptureFixture) -> None:
    told: list[BaseException] = []
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(exception_handler(with_reason(told.append)))
    errors = [ValueError("one connection's"), InvariantError("two owners")]
    with caplog.at_level(logging.ERROR):
        for error in errors:
            loop.call_exception_handler({"message": "a callback failed", "exception": error})
        loop.call_exception_handler({"message": "no error at hand"})
    loop.close()
    assert told == errors[1:]
    assert [record.getMessage() for record in caplog.records] == [
        "a callback failed",
        "a callback failed",
        "the broker ends at once, because its memory cannot be trusted any more: two owners. "
        "Everything acknowledged is on disk; start it again",
        "no error at hand",
    ]


def test_clients_are_authenticated_by_the_settings() -> None:
    async def methods(settings: Settings) -> tuple[str, ...] | None:
        async with AsyncExitStack() as stack:
            found = open_authentication(settings, asyncio.get_running_loop(), stack)
            return None if found is None else found.methods

    secret = "data:;base64," + base64.b64encode(bytes(32)).decode()
    settings = Settings(authenticationProviders="tls,token", tokenSecretKey=secret)
    assert asyncio.run(methods(settings)) is None
    settings.authenticationEnabled = True
    assert asyncio.run(methods(settings)) == ("tls", "token")
