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
        asked = [query.name for query in route.query]
        assert names == re.findall(r"\{(\w+)\}", route.path) + asked


def test_explain_is_described_with_its_fields_and_what_it_is_asked(api: Ask) -> None:
    """Both replies were described as anything at all, without a query parameter."""
    document = api("GET", "/admin/v2/openapi.json").json()
    path = "/admin/v2/headgate/explain"
    top = document["paths"][path]["get"]
    topic = document["paths"][f"{path}/{{domain}}/{{tenant}}/{{namespace}}/{{topic}}"]["get"]
    assert _reply(top) == {"$ref": "#/components/schemas/TopReport"}
    assert _reply(topic) == {"$ref": "#/components/schemas/TopicReport"}
    report = document["components"]["schemas"]["SubscriptionReport"]
    assert {"topic", "backlogMessages", "verdictSince", "limit"} <= set(report["properties"])
    assert report["properties"]["unackedMessages"]["description"].startswith("With consumers")
    # A class of another module, which the reports only contain.
    budget = document["components"]["schemas"]["BudgetState"]
    assert budget["properties"]["inWindow"]["description"]
    count, timeline = top["parameters"]
    assert (timeline["name"], timeline["schema"]["type"]) == ("timeline", "boolean")
    assert (count["name"], count["in"], count["required"]) == ("count", "query", False)
    assert count["schema"] == {"type": "integer", "minimum": 1, "maximum": 1_000, "default": 10}
    assert [each["name"] for each in topic["parameters"][-2:]] == ["perPartition", "timeline"]
    assert topic["parameters"][-1]["schema"] == {"type": "boolean", "default": False}


def _reply(operation: dict[str, Any]) -> Any:
    return operation["responses"]["2XX"]["content"]["application/json"]["schema"]
