"""A handshake counts among the connections of its port until it is done."""

from __future__ import annotations

import asyncio
from typing import Any

from headgate.app.http_connections import HttpConnections
from headgate.app.tls.gates import BinaryGate, WebGate
from headgate.broker.connection.connection_limits import ConnectionLimits
from headgate.policy.settings import Settings


def admit(_: asyncio.BaseTransport) -> bool:
    return False


def test_of_the_binary_protocol() -> None:
    limits = ConnectionLimits(Settings(brokerMaxConnectionsPerIp=1), lambda: 0)
    admission: Any = type("Admission", (), {"admit": staticmethod(admit)})
    gate = BinaryGate(admission, limits)
    assert not gate.admit(asyncio.BaseTransport())
    assert gate.refusal("/10.0.0.1:1") == ""
    gate.added("/10.0.0.1:1")
    assert gate.refusal("/10.0.0.1:2") != ""
    gate.left("/10.0.0.1:1")
    assert gate.refusal("/10.0.0.1:2") == ""


def test_of_the_web() -> None:
    connections = HttpConnections(Settings(maxHttpServerConnections=2), lambda: 0)
    gate = WebGate(admit, connections)
    assert not gate.admit(asyncio.BaseTransport())
    gate.added("/10.0.0.1:1")
    assert connections.refusal("/10.0.0.1:2") != ""
    gate.left("/10.0.0.1:1")
    assert gate.refusal("/10.0.0.1:2") == ""
