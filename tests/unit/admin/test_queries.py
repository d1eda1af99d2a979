"""Each query parameter that a handler reads is in the description of its route."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.admin import app as app_module
from headgate.admin.table import ROUTES
from tests.unit.admin.client import ask
from tests.unit.admin.fake_facade import FakeFacade

NAMES = {
    "domain": "persistent", "tenant": "public", "namespace": "default", "topic": "orders",
    "subscription": "s", "cluster": "standalone", "count": "1", "timestamp": "1", "seconds": "1",
    "ledger": "8", "entry": "0", "name": "dispatchThrottlingRateInMsg", "value": "1",
    "backup": "b",
}  # fmt: skip


class _Recording(dict[str, str]):
    """Query parameters that note which ones are looked at."""

    def __init__(self, asked: set[str]) -> None:
        super().__init__()
        self._asked = asked

    def get(self, key: str, default: Any = None) -> Any:
        self._asked.add(key)
        return super().get(key, default)


def test_each_route_describes_the_parameters_that_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only five routes did; thirty read parameters that no client could find."""
    asked: set[str] = set()
    monkeypatch.setattr(app_module, "read_query", lambda _: _Recording(asked))
    read = 0
    for route in ROUTES:
        asked.clear()
        broker = FakeFacade()
        app = app_module.AdminApp(broker, broker.clock)
        for path in ("/admin/v2/persistent/public/default/orders", None):
            prepare = path is not None
            method, target = ("PUT", path) if path else (route.method, route.path)
            if route.path.endswith(("partitioned-stats", "partitioned-internalStats")) and path:
                target = f"{path}/partitions"
            body: Any = 2 if prepare and target.endswith("partitions") else None
            for name, text in NAMES.items():
                target = target.replace(f"{{{name}}}", text)
            answer = ask(app, method, target, body)
            assert answer.status != 500, (route.path, answer.body)
        described = {query.name for query in route.query}
        assert asked <= described, f"{route.method} {route.path}: {asked - described}"
        read += bool(asked)
    assert read > 20
