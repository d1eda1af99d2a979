"""Fixtures for the tests of ``headgate admin``."""

from __future__ import annotations

import pytest

from tests.unit.cli.admin.fake_server import FakeServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """The server that every request goes to."""
    fake = FakeServer()
    fake.install(monkeypatch)
    return fake
