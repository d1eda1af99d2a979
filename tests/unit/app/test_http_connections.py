"""Connections to the web ports have bounds, in all and from one address."""

from __future__ import annotations

import logging

import pytest

from headgate.app.http_connections import HttpConnections
from headgate.policy.settings import Settings


def test_one_address_has_half_of_all(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    settings = Settings(maxHttpServerConnections=4)
    connections = HttpConnections(settings, lambda: 0)
    for port in (1, 2):
        assert connections.refusal(f"/10.0.0.1:{port}") == ""
        connections.added(f"/10.0.0.1:{port}")
    assert connections.refusal("/10.0.0.1:3") == (
        "Too many connections: maxHttpServerConnections allows 2 from one address"
    )
    for address in ("/10.0.0.2:1", "/10.0.0.4:1"):
        assert connections.refusal(address) == ""
        connections.added(address)
    assert "allows 4 in all" in connections.refusal("/10.0.0.3:1")
    connections.left("/10.0.0.1:1")
    assert connections.refusal("/10.0.0.3:1") == ""
    assert connections.refused_count == 2
    assert len(caplog.records) == 2
    settings.maxHttpServerConnections = 100
    assert connections.refusal("/10.0.0.2:3") == ""


def test_a_refusal_names_what_bounds_them(caplog: pytest.LogCaptureFixture) -> None:
    """An agent has no key ``maxHttpServerConnections``."""
    caplog.set_level(logging.INFO)
    none = Settings(maxHttpServerConnections=0)
    refusal = HttpConnections(none, lambda: 0, bound="the agent").refusal("/10.0.0.1:1")
    assert refusal.startswith("Too many connections: the agent allows ")
    assert "the web port is refused: the agent allows " in caplog.text
