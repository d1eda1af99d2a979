"""Which ports are open, and the URLs that follow. Requests to them are in tests/service."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from headgate.app.listeners import ListenError
from headgate.app.ports import Ports, Urls, plain_ports_warning
from headgate.policy.settings import Settings


def opened(settings: Settings) -> tuple[Urls, str]:
    async def story() -> tuple[Urls, str]:
        async with AsyncExitStack() as stack:
            ports = Ports.open(settings, stack)
            return ports.urls, ports.broker_id

    return asyncio.run(story())


def test_ports_that_are_off_have_no_url() -> None:
    urls, broker_id = opened(Settings(brokerServicePort=0, webServicePort=0))
    assert urls.broker.startswith("pulsar://127.0.0.1:")
    assert f"http://{broker_id}" == urls.web
    assert (urls.broker_tls, urls.web_tls) == ("", "")
    assert urls.all() == [urls.broker, urls.web]


def test_ports_of_tls_alone() -> None:
    urls, broker_id = opened(
        Settings(
            brokerServicePort=-1, webServicePort=-1, brokerServicePortTls=0, webServicePortTls=0
        )
    )
    assert urls.all() == [urls.broker_tls, urls.web_tls]
    assert urls.broker_tls.startswith("pulsar+ssl://127.0.0.1:")
    assert f"https://{broker_id}" == urls.web_tls


def test_a_port_that_is_busy_names_its_setting() -> None:
    async def story() -> None:
        async with AsyncExitStack() as stack:
            ports = Ports.open(Settings(brokerServicePort=0, webServicePort=0), stack)
            busy = int(ports.urls.web.rpartition(":")[2])
            with pytest.raises(ListenError, match=f"^webServicePortTls={busy}: the port is in use"):
                Ports.open(
                    Settings(brokerServicePort=0, webServicePort=0, webServicePortTls=busy), stack
                )

    asyncio.run(story())


def test_plain_ports_that_other_machines_reach_are_warned_of() -> None:
    def warning(**changes: object) -> str:
        values = {"authenticationEnabled": True, "bindAddress": "192.0.2.1"} | changes
        return plain_ports_warning(Settings(**values))  # type: ignore[arg-type]

    assert "brokerServicePort and webServicePort" in warning()
    assert "to webServicePort," in warning(brokerServicePort=-1)
    assert warning(brokerServicePort=-1, webServicePort=-1) == ""
    assert warning(bindAddress="127.0.0.1") == ""
    assert warning(authenticationEnabled=False) == ""
