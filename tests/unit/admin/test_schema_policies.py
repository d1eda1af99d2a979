"""Policies about schemas, of namespaces and of topics."""

from __future__ import annotations

import pytest

from tests.unit.admin.conftest import Ask

N = "/admin/v2/namespaces/public/default"
T = "/admin/v2/persistent/public/default/t"
STRATEGY = "schemaCompatibilityStrategy"


def test_the_strategy_of_a_namespace(api: Ask) -> None:
    path = f"{N}/{STRATEGY}"
    assert api("GET", path).json() == "UNDEFINED"
    assert api("PUT", path, "FULL").status == 204
    assert api("GET", path).json() == "FULL"
    assert api("GET", N).json()["schema_compatibility_strategy"] == "FULL"
    assert api("POST", path, "FULL").status == 405
    assert api("PUT", path, "UNDEFINED").status == 204
    assert api("GET", path).json() == "UNDEFINED"
    refused = api("PUT", path, "SOME")
    assert refused.status == 400
    assert "ALWAYS_INCOMPATIBLE" in refused.reason


def test_the_older_policy_of_a_namespace(api: Ask) -> None:
    path = f"{N}/schemaAutoUpdateCompatibilityStrategy"
    assert api("GET", path).status == 204
    assert api("PUT", path, "Backward").status == 204
    assert api("GET", path).json() == "Backward"
    assert api("GET", N).json()["schema_auto_update_compatibility_strategy"] == "Backward"
    api("PUT", T)
    assert api("GET", f"{T}/{STRATEGY}?applied=true").json() == "BACKWARD"
    assert api("PUT", path, "BACKWARD").status == 400


@pytest.mark.parametrize(
    ("policy", "default", "shown"),
    [
        ("isAllowAutoUpdateSchema", True, "is_allow_auto_update_schema"),
        ("schemaValidationEnforced", False, "schema_validation_enforced"),
    ],
)
def test_what_a_namespace_switches(api: Ask, policy: str, default: bool, shown: str) -> None:
    path = f"{N}/{policy}"
    assert api("GET", path).json() is default
    assert api("POST", path, not default).status == 204
    assert api("GET", path).json() is not default
    assert api("GET", f"{path}?applied=true").json() is not default
    assert api("GET", N).json()[shown] is not default


def test_a_namespace_is_created_with_them(api: Ask) -> None:
    given = {
        "schema_compatibility_strategy": "FORWARD",
        "schema_auto_update_compatibility_strategy": "Full",
        "is_allow_auto_update_schema": False,
        "schema_validation_enforced": True,
    }
    assert api("PUT", "/admin/v2/namespaces/public/other", given).status == 204
    shown = api("GET", "/admin/v2/namespaces/public/other").json()
    assert {key: shown[key] for key in given} == given


def test_the_policies_of_a_topic(api: Ask) -> None:
    assert api("GET", f"{T}/{STRATEGY}").status == 404
    api("PUT", T)
    assert api("GET", f"{T}/{STRATEGY}").body == b""
    assert api("GET", f"{T}/{STRATEGY}?applied=true").json() == "FULL"
    assert api("PUT", f"{T}/{STRATEGY}", "BACKWARD").status == 204
    assert api("GET", f"{T}/{STRATEGY}").json() == "BACKWARD"
    assert api("DELETE", f"{T}/{STRATEGY}").status == 204
    assert api("GET", f"{T}/{STRATEGY}").body == b""
    path = f"{T}/schemaValidationEnforced"
    assert api("GET", path).json() is False
    api("POST", f"{N}/schemaValidationEnforced", True)
    assert api("GET", path).json() is False
    assert api("GET", f"{path}?applied=true").json() is True
    assert api("POST", path, False).status == 204
    assert api("GET", f"{path}?applied=true").json() is False
