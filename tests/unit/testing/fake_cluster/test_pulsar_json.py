"""The answers have the names and shapes of a recorded Pulsar, and figures that agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headgate.agent.reading import proof_look, survey_looks, topic_look
from headgate.base.units import NS_PER_S
from headgate.testing.fake_cluster.cluster import FakeCluster, FakeSubscription, FakeTopic
from headgate.testing.fake_cluster.pulsar_json import internal_stats, survey, topic_stats

GOLDEN = Path(__file__).parents[3] / "conformance/golden/admin-4.0.8.jsonl"
NAME = "persistent://acme/shop/orders"
AT_NS = 100 * NS_PER_S


def cluster_with(*subscriptions: FakeSubscription) -> tuple[FakeCluster, FakeTopic]:
    cluster = FakeCluster(is_numbered=True)
    topic = FakeTopic(NAME, 50.0, list(subscriptions))
    cluster.add([topic])
    return cluster, topic


def recorded(path: str) -> dict[str, Any]:
    for line in GOLDEN.read_text().splitlines():
        found = json.loads(line)
        if found["request"]["path"] == path:
            body: dict[str, Any] = found["response"]["body"]
            return body
    raise LookupError(path)


def test_every_field_is_one_of_pulsars() -> None:
    cluster, topic = cluster_with(FakeSubscription())
    real = recorded("/admin/v2/persistent/acme/ns/t1/stats")
    mine = topic_stats(cluster, topic, AT_NS)
    assert mine.keys() - real.keys() <= {"ownerBroker"}
    real_sub, my_sub = real["subscriptions"]["fast"], mine["subscriptions"]["sub"]
    assert my_sub.keys() <= real_sub.keys()
    assert my_sub["consumers"][0].keys() <= real_sub["consumers"][0].keys()
    assert mine["publishers"][0].keys() <= real["publishers"][0].keys()
    real, mine = (
        recorded("/admin/v2/persistent/acme/ns/t1/internalStats"), internal_stats(topic, AT_NS),
    )  # fmt: skip
    assert mine.keys() <= real.keys()
    assert mine["cursors"]["sub"].keys() <= real["cursors"]["fast"].keys()


def test_figures_of_all_answers_agree() -> None:
    slow = FakeSubscription("slow", acked_per_s=20.0, unacked=30, permits=0, consumers=2)
    cluster, topic = cluster_with(slow)
    stats = json.dumps(topic_stats(cluster, topic, AT_NS)).encode()
    look = topic_look(stats, NAME, AT_NS, "b")
    sub = look.subscriptions[0]
    assert (look.published, sub.backlog, sub.sent, sub.unacked) == (5_000, 3_000, 2_030, 30)
    proof = proof_look(json.dumps(internal_stats(topic, AT_NS)).encode(), NAME, AT_NS)
    cursor = proof.cursors[0]
    assert (proof.last_position, cursor.read_position) == ((8, 4_999), (8, 2_030))
    assert cursor.mark_delete_position == (8, 1_999)
    (seen,) = survey_looks(
        json.dumps(survey(cluster, cluster.brokers[0], AT_NS)).encode(), AT_NS, "b"
    )
    assert (seen.is_survey, seen.published) == (True, 5_000)
    assert seen.subscriptions[0].backlog == 3_000
    assert seen.subscriptions[0].events is None


def test_a_caught_up_cursor_waits_and_a_stuck_one_claims_to_read() -> None:
    _, topic = cluster_with(FakeSubscription("fine", acked_per_s=50), FakeSubscription("stuck",
                            acked_per_s=10, is_stuck=True))  # fmt: skip
    cursors = internal_stats(topic, AT_NS)["cursors"]
    assert [cursors[name]["waitingReadOp"] for name in ("fine", "stuck")] == [True, False]
    assert cursors["stuck"]["subscriptionHavePendingRead"]


def test_clocks_of_brokers_lie_apart() -> None:
    cluster, topic = cluster_with(FakeSubscription())
    before = topic_stats(cluster, topic, AT_NS)["subscriptions"]["sub"]["lastAckedTimestamp"]
    cluster.clock_skew_ms[cluster.owner(NAME)] = -90_000
    after = topic_stats(cluster, topic, AT_NS)["subscriptions"]["sub"]["lastAckedTimestamp"]
    assert after == before - 90_000
