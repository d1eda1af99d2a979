"""Figures that follow from the time alone, and owners."""

from __future__ import annotations

from headgate.testing.fake_cluster.cluster import FakeCluster, FakeTopic, amount, many_topics

NAME = "persistent://acme/shop/orders"


def test_an_amount_grows_evenly() -> None:
    assert [amount(2.5, seconds * 1_000_000_000) for seconds in range(4)] == [0, 2, 5, 7]


def test_topics_are_spread_over_brokers_and_bundles() -> None:
    cluster = FakeCluster([f"b-{index}:1" for index in range(4)])
    cluster.add(many_topics(400))
    assert all(60 < len(topics) < 140 for topics in cluster.by_owner.values())
    assert {cluster.bundle(name) for name in cluster.topics} == {
        "0x00000000_0x3fffffff", "0x40000000_0x7fffffff", "0x80000000_0xbfffffff",
        "0xc0000000_0x100000000",
    }  # fmt: skip
    assert len(cluster.namespace_topics("acme/ns-3")) == 20


def test_a_topic_moves_and_goes() -> None:
    cluster = FakeCluster(["a:1", "b:1"])
    cluster.add([FakeTopic(NAME)])
    for broker in ("a:1", "b:1", "a:1"):
        cluster.move(NAME, broker)
        assert cluster.owner(NAME) == broker
        assert [len(cluster.by_owner.get(b, [])) for b in ("a:1", "b:1")].index(1) == (
            0 if broker == "a:1" else 1
        )
    cluster.remove(NAME)
    assert not cluster.topics
    assert not any(cluster.by_owner.values())
    assert not cluster.moved
