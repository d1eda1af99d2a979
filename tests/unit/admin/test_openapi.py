"""The API describes itself."""

from __future__ import annotations

import json
import re
from typing import Any

from headgate.admin.table import ROUTES
from tests.unit.admin.conftest import Ask


def _references(value: Any) -> set[str]:
    return set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(value)))


def test_every_route_is_described(api: Ask) -> None:
    document = api("GET", "/admin/v2/openapi.json").json()
    described = {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert set(described) == {(route.method, route.path) for route in ROUTES}
    assert _references(document) <= set(document["components"]["schemas"])
    for route in ROUTES:
        operation = described[(route.method, route.path)]
        assert operation["x-headgate-operation"] == route.operation.value
        assert ("requestBody" in operation) == (route.body is not None)
        names = [parameter["name"] for parameter in operation["parameters"]]
        assert names == re.findall(r"\{(\w+)\}", route.path)
