"""The one cluster."""

from __future__ import annotations

from tests.unit.admin.conftest import Ask

C = "/admin/v2/clusters/standalone"
N = "/admin/v2/namespaces/public/default"
T = "/admin/v2/persistent/public/default/t"


def test_there_is_nothing_to_change(api: Ask) -> None:
    for method in ("POST", "DELETE"):
        assert api(method, C, {}).status == 405
        assert api(method, "/admin/v2/clusters/none", {}).status == 404
    assert api("GET", f"{C}/failureDomains").json() == {}
    assert api("GET", f"{C}/peers").json() == []
    answer = api("GET", f"{C}/namespaceIsolationPolicies")
    assert answer.status == 404
    assert "NamespaceIsolationPolicies for cluster standalone does not exist" in answer.reason


def test_a_namespace_is_in_this_cluster(api: Ask) -> None:
    assert api("GET", f"{N}/replication").json() == ["standalone"]
    assert api("POST", f"{N}/replication", ["standalone"]).status == 204
    answer = api("POST", f"{N}/replication", ["standalone", "far"])
    assert (answer.status, answer.reason) == (403, "Invalid cluster id: far")
    assert api("POST", f"{N}/replication", []).status == 412


def test_a_topic_is_in_this_cluster(api: Ask) -> None:
    api("PUT", T)
    assert api("GET", f"{T}/replication").status == 204
    assert api("GET", f"{T}/replication?applied=true").json() == ["standalone"]
    assert api("POST", f"{T}/replication", ["standalone"]).status == 204
    assert api("POST", f"{T}/replication", ["far"]).status == 403
    assert api("DELETE", f"{T}/replication").status == 204


def test_there_are_no_shadow_topics(api: Ask) -> None:
    api("PUT", T)
    assert api("GET", f"{T}/shadowTopics").json() == []
    assert api("DELETE", f"{T}/shadowTopics").status == 204
    answer = api("PUT", f"{T}/shadowTopics", ["x"])
    assert answer.status == 405
    assert answer.reason == "Geo-replication is not supported by this broker"
