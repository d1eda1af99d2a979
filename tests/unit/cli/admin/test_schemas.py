"""The verbs about schemas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.admin.fake_server import FakeServer, admin

S = "/admin/v2/schemas/t/n/x"
ANSWER = {
    "version": 3, "type": "AVRO", "timestamp": 7, "data": '{"type":"long"}', "properties": {},
}  # fmt: skip
INFO = {"name": "x", "schema": {"type": "long"}, "type": "AVRO", "timestamp": 7, "properties": {}}


def test_a_schema_is_shown(server: FakeServer) -> None:
    server.answer(ANSWER)
    found = json.loads(admin("schemas", "get", "t/n/x").output)
    assert found == {"version": 3, "schemaInfo": INFO}
    assert json.loads(admin("schemas", "get", "t/n/x", "-v", "3").output) == INFO
    server.answer({"getSchemaResponses": [ANSWER | {"data": ""}]})
    assert json.loads(admin("schemas", "get", "t/n/x", "-a").output) == INFO | {"schema": ""}
    assert [asked[:2] for asked in server.asked] == [
        ("GET", f"{S}/schema"), ("GET", f"{S}/schema/3"), ("GET", f"{S}/schemas"),
    ]  # fmt: skip
    server.answer({"info": {}})
    assert json.loads(admin("schemas", "metadata", "t/n/x").output) == {"info": {}}


def test_a_schema_comes_from_a_file(server: FakeServer, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    body = {"type": "STRING", "schema": "", "properties": {}}
    path.write_text(json.dumps(body | {"more": 1}))
    for verb, rest in (("upload", "schema"), ("compatibility", "compatibility")):
        assert admin("schemas", verb, "t/n/x", "-f", str(path)).exit_code == 0
        method, asked, sent = server.asked.pop()
        assert (method, asked, json.loads(sent)) == ("POST", f"{S}/{rest}", body)


@pytest.mark.parametrize("text", [None, "no json", "[]"])
def test_files_that_are_no_schema(server: FakeServer, tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "schema.json"
    if text is not None:
        path.write_text(text)
    result = admin("schemas", "upload", "t/n/x", "-f", str(path))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Schema file {path} ")
    assert server.asked == []


def test_a_schema_is_deleted(server: FakeServer) -> None:
    admin("schemas", "delete", "t/n/x")
    admin("schemas", "delete", "t/n/x", "-f")
    assert [asked[:2] for asked in server.asked] == [
        ("DELETE", f"{S}/schema?force=false"), ("DELETE", f"{S}/schema?force=true"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("namespaces set-schema-compatibility-strategy t/n -c full",
         ("PUT", "namespaces/t/n/schemaCompatibilityStrategy", '"FULL"')),
        ("namespaces set-schema-autoupdate-strategy t/n -c backward",
         ("PUT", "namespaces/t/n/schemaAutoUpdateCompatibilityStrategy", '"Backward"')),
        ("namespaces set-schema-autoupdate-strategy t/n -d",
         ("PUT", "namespaces/t/n/schemaAutoUpdateCompatibilityStrategy", '"AutoUpdateDisabled"')),
        ("namespaces set-is-allow-auto-update-schema t/n -d",
         ("POST", "namespaces/t/n/isAllowAutoUpdateSchema", "false")),
        ("namespaces set-schema-validation-enforce t/n -e",
         ("POST", "namespaces/t/n/schemaValidationEnforced", "true")),
        ("namespaces get-schema-validation-enforce t/n -ap",
         ("GET", "namespaces/t/n/schemaValidationEnforced?applied=true", "")),
        ("topics set-schema-validation-enforce t/n/x -e",
         ("POST", "persistent/t/n/x/schemaValidationEnforced", "true")),
        ("topicPolicies set-schema-compatibility-strategy t/n/x -s BACKWARD",
         ("PUT", "persistent/t/n/x/schemaCompatibilityStrategy", '"BACKWARD"')),
        ("topicPolicies remove-schema-compatibility-strategy t/n/x",
         ("DELETE", "persistent/t/n/x/schemaCompatibilityStrategy", "")),
    ],
)  # fmt: skip
def test_policies(server: FakeServer, words: str, asked: tuple[str, str, str]) -> None:
    assert admin(*words.split()).exit_code == 0
    method, path, body = asked
    assert server.asked == [(method, f"/admin/v2/{path}", body)]


@pytest.mark.parametrize(
    ("words", "first_line"),
    [
        ("schemas get t/n/x -v 1 -a", "Only one or neither of --version and --all-version"),
        ("schemas get t/n/x -v -1", "Option --version must be greater than 0, but found -1"),
        ("namespaces set-schema-validation-enforce t/n", "Need to specify either --enable or"),
        ("namespaces set-schema-validation-enforce t/n -e -d", "Need to specify either --enable"),
        ("namespaces set-schema-autoupdate-strategy t/n", "Either --compatibility or --disabled"),
        ("namespaces set-schema-compatibility-strategy t/n -c SOME", "Invalid value for option"),
    ],
)  # fmt: skip
def test_wrong_usage(server: FakeServer, words: str, first_line: str) -> None:
    result = admin(*words.split())
    assert result.exit_code == 1
    assert result.stderr.startswith(first_line)
    assert server.asked == []
