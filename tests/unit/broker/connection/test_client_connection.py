"""Who answers for a connection."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headgate.base.identity import NOBODY, Identity
from headgate.broker.connection.client_connection import owner_of


def test_a_role_answers_for_its_connections_and_a_network_for_those_without() -> None:
    connection: Any = SimpleNamespace(address="/10.0.0.1:5", identity=Identity("shop"))
    assert owner_of(connection) == "role shop"
    connection.identity = NOBODY
    assert owner_of(connection) == "10.0.0.1"
