"""Requests about tenants, with all clusters by default."""

from __future__ import annotations

import json

from tests.unit.cli.admin.fake_server import FakeServer, Reply, admin


def test_a_tenant_gets_all_clusters_unless_some_are_named(server: FakeServer) -> None:
    server.replies = [Reply(200, b'["standalone"]'), Reply()]
    assert admin("tenants", "create", "acme").exit_code == 0
    assert server.asked[0] == ("GET", "/admin/v2/clusters", "")
    method, path, body = server.asked[1]
    assert (method, path) == ("PUT", "/admin/v2/tenants/acme")
    assert json.loads(body) == {"adminRoles": [], "allowedClusters": ["standalone"]}


def test_an_update_replaces_roles_and_clusters(server: FakeServer) -> None:
    result = admin("tenants", "update", "acme", "-r", "a,b", "-c", "east")
    assert (result.exit_code, result.output) == (0, "")
    assert server.asked == [
        ("POST", "/admin/v2/tenants/acme", '{"adminRoles":["a","b"],"allowedClusters":["east"]}')
    ]


def test_delete(server: FakeServer) -> None:
    admin("tenants", "delete", "acme")
    admin("tenants", "delete", "acme", "-f")
    assert [path for _, path, _ in server.asked] == [
        "/admin/v2/tenants/acme?force=false",
        "/admin/v2/tenants/acme?force=true",
    ]
