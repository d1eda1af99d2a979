"""A fake broker and the admin API over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from headgate.admin.app import AdminApp
from tests.unit.admin.client import Answer, ask
from tests.unit.admin.fake_facade import FakeFacade

Ask = Callable[..., Answer]


@pytest.fixture
def broker() -> FakeFacade:
    """A broker that has just started."""
    return FakeFacade()


@pytest.fixture
def api(broker: FakeFacade) -> Ask:
    """``api(method, path, body, scope)``: one request to the admin API of ``broker``."""
    app = AdminApp(broker, broker.clock)

    def request(
        method: str, path: str, body: Any = None, scope: Mapping[str, Any] | None = None
    ) -> Answer:
        return ask(app, method, path, body, scope)

    return request
