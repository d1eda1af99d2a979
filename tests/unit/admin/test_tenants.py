"""Tenants."""

from __future__ import annotations

from tests.unit.admin.conftest import Ask

T = "/admin/v2/tenants"
INFO = {"adminRoles": ["b", "a", "a"], "allowedClusters": ["standalone"]}


def test_a_tenants_life(api: Ask) -> None:
    assert api("PUT", f"{T}/acme", INFO).status == 204
    assert api("GET", f"{T}/acme").json() == {
        "adminRoles": ["a", "b"],
        "allowedClusters": ["standalone"],
    }
    assert api("POST", f"{T}/acme", INFO | {"adminRoles": None}).status == 204
    assert api("GET", f"{T}/acme").json()["adminRoles"] == []
    assert api("DELETE", f"{T}/acme").status == 204
    assert (api("GET", f"{T}/acme").status, api("GET", f"{T}/acme").reason) == (
        404, "Tenant does not exist",
    )  # fmt: skip


def test_what_is_not_allowed(api: Ask) -> None:
    assert api("PUT", f"{T}/acme").reason == "Clusters cannot be empty or blank"
    assert api("PUT", f"{T}/acme", {"allowedClusters": ["x"]}).reason == "Clusters do not exist"
    assert api("PUT", f"{T}/acme", {"allowedClusters": "x"}).status == 400
    assert api("POST", f"{T}/acme", INFO).reason == "Tenant acme not found"
    answer = api("DELETE", f"{T}/public?force=true")
    assert (answer.status, answer.reason) == (
        405, "Broker doesn't allow forced deletion of tenants",
    )  # fmt: skip


def test_a_name_that_a_url_resolves_is_not_created(api: Ask) -> None:
    for name in (".", ".."):
        answer = api("PUT", f"{T}/{name}", INFO)
        assert (answer.status, answer.reason) == (412, "Tenant name is not valid")
    assert api("PUT", f"{T}/...", INFO).status == 204
