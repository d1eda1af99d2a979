"""Figures of the whole broker."""

from __future__ import annotations

from headgate.base.names import parse_topic
from headgate.metadata.bundles import bundle_of, split_bundles
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade, FakeSubscription

S = "/admin/v2/broker-stats"
P = "/admin/v2/persistent/public/default"
FULL = "persistent://public/default"


def furnish(api: Ask, broker: FakeFacade, count: int = 3) -> None:
    for number in range(count):
        api("PUT", f"{P}/t{number}")
        topic = broker.topic(parse_topic(f"t{number}"))
        topic.entries_ms += [1, 2]
        topic.producers.append("p")
        topic.subscriptions["s"] = FakeSubscription(next=1, consumers=["c"])


def test_all_topics_by_namespace_and_bundle(api: Ask, broker: FakeFacade) -> None:
    assert api("GET", f"{S}/topics").json() == {}
    furnish(api, broker)
    found = api("GET", f"{S}/topics").json()
    assert list(found) == ["public/default"]
    shown = {}
    for bundle, domains in found["public/default"].items():
        assert domains["non-persistent"] == {}
        for name, topic in domains["persistent"].items():
            assert bundle_of(split_bundles(4), name) == bundle
            shown[name] = topic
    assert set(shown) == {f"{FULL}/t{number}" for number in range(3)}
    topic = shown[f"{FULL}/t0"]
    assert (topic["producerCount"], topic["msgInCount"], topic["storageSize"]) == (1, 2, 200)
    assert topic["publishers"][0]["producerName"] == "p"
    (subscription,) = topic["subscriptions"].values()
    assert (subscription["msgBacklog"], subscription["type"]) == (1, "Exclusive")
    assert subscription["consumers"][0]["consumerName"] == "c"
    assert subscription["totalNonContiguousDeletedMessagesRange"] == 0
    assert api("GET", f"{S}/destinations").json() == found
    assert broker.reserved_bytes == 0


def test_a_topic_with_many_subscriptions_is_shown_in_pieces(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker, 1)
    topic = broker.topic(parse_topic("t0"))
    topic.producers += [f"p{number}" for number in range(200)]
    topic.subscriptions |= {f"s{number}": FakeSubscription() for number in range(300)}
    ((domains,),) = (tuple(each.values()) for each in api("GET", f"{S}/topics").json().values())
    shown = domains["persistent"][f"{FULL}/t0"]
    assert (len(shown["subscriptions"]), shown["producerCount"]) == (301, 201)
    assert len(shown["publishers"]) == 201


def test_sums_of_a_namespace(api: Ask, broker: FakeFacade) -> None:
    assert api("GET", f"{S}/metrics").json() == []
    furnish(api, broker)
    (of_namespace,) = api("GET", f"{S}/metrics").json()
    assert of_namespace["dimensions"] == {"namespace": "public/default"}
    metrics = of_namespace["metrics"]
    assert (metrics["brk_no_of_topics"], metrics["brk_no_of_producers"]) == (3, 3)
    assert (metrics["brk_no_of_consumers"], metrics["brk_msg_backlog"]) == (3, 3)
    assert metrics["brk_storage_size"] == 600


def test_the_load_report(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    report = api("GET", f"{S}/load-report").json()
    assert report["webServiceUrl"] == "http://127.0.0.1:8080"
    assert (report["numTopics"], report["numBundles"]) == (3, 8)
    assert (report["numProducers"], report["numConsumers"]) == (3, 3)
    assert report["lastUpdate"] == broker.clock.now_ms
    assert report["loadReportType"] == "LocalBrokerData"
    assert "pulsarServiceUrlTls" not in report
