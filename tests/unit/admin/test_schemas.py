"""Requests about the schemas of topics."""

from __future__ import annotations

import json

import pytest

from headgate.admin.schemas import JSON_BYTES_MAX
from headgate.admin.streaming import PARTS_HELD
from headgate.base.names import parse_topic
from headgate.base.schema_types import SchemaType
from headgate.metadata.rows import SchemaRow
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import NOW_MS, FakeFacade

S = "/admin/v2/schemas/public/default/t"
AVRO = {"type": "AVRO", "schema": '{"type":"record","name":"R","fields":[]}'}


def test_versions_are_posted_and_read(api: Ask) -> None:
    assert api("GET", f"{S}/schema").status == 404
    assert api("GET", f"{S}/schema").reason == "Schema not found"
    assert api("GET", f"{S}/schemas").json() == {"getSchemaResponses": []}
    posted = api("POST", f"{S}/schema", AVRO | {"properties": {"k": "v"}})
    assert (posted.status, posted.json()) == (200, {"version": {"version": 0}})
    api("POST", f"{S}/schema", {"type": "AVRO", "schema": '"string"'})
    first = {
        "version": 0, "type": "AVRO", "timestamp": NOW_MS, "data": AVRO["schema"],
        "properties": {"k": "v"},
    }  # fmt: skip
    second = first | {"version": 1, "data": '"string"', "properties": {}}
    assert api("GET", f"{S}/schema").json() == second
    assert list(api("GET", f"{S}/schema").json()) == list(first)
    assert api("GET", f"{S}/schema/0").json() == first
    assert api("GET", f"{S}/schema/2").status == 404
    assert api("GET", f"{S}/schema/x").status == 404
    assert api("GET", f"{S}/schemas").json() == {"getSchemaResponses": [first, second]}
    entry = {"ledgerId": -1, "entryId": -1}
    assert api("GET", f"{S}/metadata").json() == {
        "info": {"version": 1} | entry,
        "index": [{"version": 0} | entry, {"version": 1} | entry],
    }


def test_a_definition_is_asked_about(api: Ask) -> None:
    assert api("POST", f"{S}/version", AVRO).json() == {"version": -1}
    api("POST", f"{S}/schema", AVRO)
    assert api("POST", f"{S}/version", AVRO).json() == {"version": 0}
    assert api("POST", f"{S}/compatibility", AVRO).json() == {
        "compatibility": True, "schemaCompatibilityStrategy": "FULL",
    }  # fmt: skip
    for rest in ("compatibility", "schema"):
        assert api("POST", f"{S}/{rest}", {"type": "STRING", "schema": ""}).status == 409


def test_a_schema_is_deleted(api: Ask) -> None:
    assert api("DELETE", f"{S}/schema").json() == {"version": -1}
    api("POST", f"{S}/schema", AVRO)
    assert api("DELETE", f"{S}/schema").json() == {"version": 1}
    assert api("GET", f"{S}/schema").status == api("GET", f"{S}/schema/0").status == 404
    assert api("POST", f"{S}/schema", AVRO).json()["version"]["version"] == 2
    assert api("DELETE", f"{S}/schema?force=true").json() == {"version": 2}
    assert api("POST", f"{S}/schema", AVRO).json()["version"]["version"] == 0


def test_key_and_value_are_shown_as_json(api: Ask, broker: FakeFacade) -> None:
    pair = {"key": "", "value": {"type": "record", "name": "R", "fields": []}}
    types = {"key.schema.type": "STRING", "value.schema.type": "AVRO"}
    body = {"type": "KEY_VALUE", "schema": json.dumps(pair), "properties": types}
    assert api("POST", f"{S}/schema", body).status == 200
    shown = api("GET", f"{S}/schema").json()
    assert json.loads(shown["data"]) == pair
    assert shown["properties"] == types
    bad = api("POST", f"{S}/schema", body | {"schema": "x"})
    assert bad.status == 422
    stored = SchemaRow(type=SchemaType.KEY_VALUE, data=b"cut")
    topic = parse_topic("old")
    broker._commit(broker.catalog.plan_schema(topic, stored, None, needs_topic=False))
    assert api("GET", "/admin/v2/schemas/public/default/old/schema").json()["data"] == "cut"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"type": "NONSENSE", "schema": ""}, 422, "allowed are NONE, STRING"),
        ({"schema": ""}, 400, "type"),
        (None, 400, "A schema is needed"),
    ],
)
def test_bodies_that_are_no_schema(api: Ask, body: object, status: int, words: str) -> None:
    answer = api("POST", f"{S}/schema", body)
    assert answer.status == status
    assert words in answer.reason


def test_many_versions_are_sent_in_parts(api: Ask) -> None:
    for number in range(40):
        schema = json.dumps(
            {"type": "record", "name": f"R{number}", "fields": [], "doc": "x" * 4000}
        )
        api("POST", f"{S}/schema", {"type": "AVRO", "schema": schema})
    found = api("GET", f"{S}/schemas").json()["getSchemaResponses"]
    assert [each["version"] for each in found] == list(range(40))


def test_versions_are_charged_with_what_is_made_of_them(api: Ask, broker: FakeFacade) -> None:
    """A control character of a definition is six in JSON. 512 requests for 28 versions with
    128 KiB of them took 1.6 GB, and were charged with nothing."""
    size = 100_000
    for number in range(3):
        definition = {"type": "STRING", "schema": "\1" * size + str(number)}
        assert api("POST", f"{S}/schema", definition).status == 200
    assert len(api("GET", f"{S}/schemas").body) > 3 * JSON_BYTES_MAX * size
    assert broker.reserved_most >= PARTS_HELD * JSON_BYTES_MAX * size
    assert broker.reserved_bytes == 0
