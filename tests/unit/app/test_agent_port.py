"""The agent's port has TLS by a broker's settings; ``tests/service/test_agent_daemon.py`` opens
it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from headgate.agent.configuration import TLS_KEYS, PortSettings
from headgate.app.agent_port import MEMORY_BYTES_MAX, AgentPort
from headgate.app.web import WebServer
from headgate.base.errors import InputError
from headgate.broker.http_memory import HttpMemory
from headgate.testing import ManualClock
from tests.trial_certificates import Trial


def tls_of(trial: Trial) -> dict[str, str]:
    return {key: text for key, text in trial.settings.items() if key in TLS_KEYS}


def test_without_certificates_it_speaks_http() -> None:
    port = AgentPort.open(PortSettings(), ManualClock())
    assert (port.scheme, port.certificate()) == ("http", None)


def test_with_certificates_it_speaks_https(tmp_path: Path) -> None:
    port = AgentPort.open(PortSettings(tls=tls_of(Trial(tmp_path))), ManualClock())
    assert port.scheme == "https"


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("tlsKeyFilePath", "/not/there", "tlsKeyFilePath=/not/there.*cannot be read"),
        ("tlsProtocols", "SSLv3", "tlsProtocols: 'SSLv3' is not allowed"),
        ("tlsCertRefreshCheckDurationSec", "x", "tlsCertRefreshCheckDurationSec='x'"),
    ],
)
def test_what_cannot_be_used_stops_the_start(
    tmp_path: Path, key: str, text: str, sentence: str
) -> None:
    tls = tls_of(Trial(tmp_path)) | {key: text}
    with pytest.raises(InputError, match=sentence.replace("=/", "[=: ]+/")):
        AgentPort.open(PortSettings(tls=tls), ManualClock())


def test_what_requests_hold_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """12 connections without credentials took 400 MB of an agent."""
    given: list[HttpMemory] = []

    class Server:
        async def close(self) -> None:
            return None

    async def start(*_: Any, memory: HttpMemory, **__: Any) -> Server:
        given.append(memory)
        return Server()

    async def serve() -> None:
        port = AgentPort.open(PortSettings(), ManualClock())
        async with AsyncExitStack() as stack:
            await port.serve(cast(Any, None), cast(Any, None), stack)

    monkeypatch.setattr(WebServer, "start", start)
    asyncio.run(serve())
    (memory,) = given

    class Connection:
        reason = ""

        def end_for_memory(self, reason: str) -> None:
            self.reason = reason

    one = Connection()
    memory.hold(one, MEMORY_BYTES_MAX, "10.0.0.1")
    assert not one.reason
    memory.hold(one, MEMORY_BYTES_MAX + 1, "10.0.0.1")
    assert "the agent's bound" in one.reason
