"""The routes of encryption and of the largest message."""

from __future__ import annotations

from tests.unit.admin.conftest import Ask

N = "/admin/v2/namespaces/public/default"
P = "/admin/v2/persistent/public/default"


def test_encryption_may_be_required(api: Ask) -> None:
    assert api("GET", f"{N}/encryptionRequired").json() is False
    assert api("POST", f"{N}/encryptionRequired", True).status == 204
    assert api("GET", f"{N}/encryptionRequired").json() is True
    assert api("GET", N).json()["encryption_required"] is True
    assert api("PUT", f"{N}-4", {"encryption_required": True}).status == 204
    assert api("GET", f"{N}-4/encryptionRequired").json() is True
    assert api("POST", f"{N}/encryptionRequired", "yes").status == 400
    assert api("GET", f"{N}-none/encryptionRequired").status == 404


def test_a_topic_has_a_largest_message(api: Ask) -> None:
    api("PUT", f"{P}/t")
    path = f"{P}/t/maxMessageSize"
    assert api("GET", path).status == 204
    assert api("POST", path, 1_000).status == 204
    assert api("GET", path).json() == 1_000
    refused = api("POST", path, 6_000_000)
    assert refused.status == 412
    assert "must be smaller than that in the broker-level, 5242880" in refused.reason
    assert api("POST", path, -1).status == 412
    assert api("DELETE", path).status == 204
    assert api("GET", path).status == 204
