"""Properties of namespaces and topics."""

from __future__ import annotations

from tests.unit.admin.conftest import Ask

N = "/admin/v2/namespaces/public/default"
P = "/admin/v2/persistent/public/default"


def test_properties_of_a_namespace(api: Ask) -> None:
    assert api("GET", f"{N}/properties").json() == {}
    assert api("PUT", f"{N}/properties", {"a": "1", "b": "2"}).status == 204
    assert api("PUT", f"{N}/property/c%2Fd/x%20y").status == 204
    assert api("GET", f"{N}/properties").json() == {"a": "1", "b": "2", "c/d": "x y"}
    assert api("GET", f"{N}/property/a").body == b"1"
    assert api("GET", f"{N}/property/none").status == 204
    answer = api("DELETE", f"{N}/property/a")
    assert (answer.status, answer.body) == (200, b"1")
    assert api("DELETE", f"{N}/property/a").status == 204
    assert api("DELETE", f"{N}/properties").status == 204
    assert api("GET", f"{N}/properties").json() == {}
    assert api("PUT", f"{N}/properties", {}).status == 412
    assert api("PUT", "/admin/v2/namespaces/public/none/properties", {"a": "1"}).status == 404


def test_properties_of_a_topic(api: Ask) -> None:
    api("PUT", f"{P}/t", {"a": "1"})
    assert api("PUT", f"{P}/t/properties", {"b": "2"}).status == 204
    assert api("GET", f"{P}/t/properties").json() == {"a": "1", "b": "2"}
    assert api("DELETE", f"{P}/t/properties?key=a").status == 204
    assert api("DELETE", f"{P}/t/properties?key=none").status == 204
    assert api("GET", f"{P}/t/properties").json() == {"b": "2"}
    assert api("DELETE", f"{P}/t/properties").status == 404
    assert api("PUT", f"{P}/t/properties").status == 412
    assert api("GET", f"{P}/none/properties").status == 404


def test_a_partition_has_its_own(api: Ask) -> None:
    api("PUT", f"{P}/pt/partitions", {"partitions": 2, "properties": {"a": "1"}})
    assert api("GET", f"{P}/pt/properties").json() == {"a": "1"}
    assert api("PUT", f"{P}/pt-partition-1/properties", {"b": "2"}).status == 204
    assert api("GET", f"{P}/pt-partition-1/properties").json() == {"b": "2"}
    assert api("GET", f"{P}/pt-partition-0/properties").json() == {}
