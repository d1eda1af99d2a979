"""Bundles: listed, unloaded, never split."""

from __future__ import annotations

from headgate.base.names import parse_topic
from headgate.metadata.bundles import bundle_of, split_bundles
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade

N = "/admin/v2/namespaces/public/default"
P = "/admin/v2/persistent/public/default"
TOPICS = [f"persistent://public/default/t{number}" for number in range(20)]


def furnish(api: Ask) -> None:
    for number in range(20):
        api("PUT", f"{P}/t{number}")


def unloaded(broker: FakeFacade) -> set[str]:
    return {name for name in TOPICS if broker.topic(parse_topic(name)).unloaded}


def test_the_bundles_of_a_namespace(api: Ask) -> None:
    assert api("GET", f"{N}/bundles").json()["numBundles"] == 4
    assert api("GET", "/admin/v2/namespaces/public/none/bundles").status == 404


def test_a_namespace_is_unloaded(api: Ask, broker: FakeFacade) -> None:
    furnish(api)
    assert api("PUT", f"{N}/unload").status == 204
    assert unloaded(broker) == set(TOPICS)
    assert api("PUT", "/admin/v2/namespaces/public/none/unload").status == 404


def test_one_bundle_is_unloaded(api: Ask, broker: FakeFacade) -> None:
    furnish(api)
    bundle = "0x40000000_0x80000000"
    answer = api("PUT", f"{N}/{bundle}/unload?destinationBroker=127.0.0.1:8080")
    assert answer.status == 204
    expected = {name for name in TOPICS if bundle_of(split_bundles(4), name) == bundle}
    assert unloaded(broker) == expected
    assert 0 < len(expected) < len(TOPICS)
    answer = api("PUT", f"{N}/{bundle}/unload?destinationBroker=elsewhere:8080")
    assert answer.reason == "destinationBroker is not this broker, which owns all bundles"
    answer = api("PUT", f"{N}/0x0_0x1/unload")
    assert answer.status == 412
    assert "has no bundle '0x0_0x1'" in answer.reason


def test_a_bundle_is_not_split(api: Ask) -> None:
    answer = api("PUT", f"{N}/0x00000000_0x40000000/split?unload=true")
    assert answer.status == 405
    assert "one broker owns all bundles" in answer.reason
    assert api("PUT", f"{N}/none/split").status == 412


def test_the_broker_owns_all_bundles(api: Ask) -> None:
    owned = api("GET", "/admin/v2/brokers/standalone/127.0.0.1:8080/ownedNamespaces").json()
    assert len(owned) == 8  # those of public/default and pulsar/system
    assert owned["public/default/0x00000000_0x40000000"] == {
        "broker_assignment": "shared", "is_controlled": False, "is_active": True,
    }  # fmt: skip
    assert api("GET", "/admin/v2/brokers/standalone/other:1/ownedNamespaces").status == 404
    assert api("GET", "/admin/v2/brokers/none/127.0.0.1:8080/ownedNamespaces").status == 404
