"""The agent's routes that views of the page ask, without a socket."""

from __future__ import annotations

from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.shared_history import SharedHistory
from tests.unit.agent.known import READY, limits_of, per_s
from tests.unit.agent.looks import TOPIC, backlog, look
from tests.unit.agent.watched import Watch, ask

BASE = "/admin/v2/headgate"
STATS = "/admin/v2/persistent/acme/orders/paid"


def seen(name: str = "prod") -> Watch:
    """A cluster with one topic."""
    history = SharedHistory(ClusterHistory(name))
    history.note_look(look(1, backlog(backlog=3, consumers=(READY,)), storage_bytes=300))
    history.note_limits(limits_of(dispatch=per_s(60)))
    return Watch(name, history)


def test_clusters_tell_how_they_are_and_their_totals_on_demand() -> None:
    found = ask(f"{BASE}/clusters", seen("prod"), seen("test"))[1]
    assert [each["cluster"] for each in found] == ["prod", "test"]
    assert all("totals" not in each and each["lastLookAgeS"] == 1.5 for each in found)
    (one,) = ask(f"{BASE}/clusters?totals=true", seen())[1]
    assert one["totals"]["backlogMessages"] == 3
    assert ask(f"{BASE}/clusters?totals=1", seen())[0] == 400


def test_limits_and_storage_are_those_of_one_cluster() -> None:
    for path, field in (("limits", "limitsTotal"), ("storage", "topicsTotal")):
        status, report, _ = ask(f"{BASE}/{path}", seen())
        assert (status, report["broker"], report[field]) == (200, "prod", 1)
        assert ask(f"{BASE}/{path}?count=0", seen())[0] == 400
        assert ask(f"{BASE}/{path}", seen("prod"), seen("test"))[0] == 400
        report = ask(f"{BASE}/{path}?cluster=test", seen("prod"), seen("test"))[1]
        assert report["broker"] == "test"


def test_statistics_are_those_of_the_last_look() -> None:
    for kind in ("stats", "partitioned-stats?perPartition=false"):
        status, found, _ = ask(f"{STATS}/{kind}", seen())
        assert (status, found["subscriptions"]["billing"]["msgBacklog"]) == (200, 3)
    status, body, _ = ask("/admin/v2/persistent/acme/orders/none/stats", seen())
    assert (status, body["reason"][:50]) == (
        404,
        "Topic persistent://acme/orders/none was not seen: t"[:50],
    )
    assert ask("/admin/v2/durable/acme/orders/paid/stats", seen())[0] == 404


def test_statistics_of_a_partitioned_topic_are_those_of_its_partitions() -> None:
    watch = seen()
    for number in range(2):
        watch.history.note_look(look(1, backlog(backlog=2), topic=f"{TOPIC}-x-partition-{number}"))
    found = ask(f"{STATS}-x/partitioned-stats", watch)[1]
    assert found["subscriptions"]["billing"]["msgBacklog"] == 4


def test_a_client_learns_its_role_and_may_change_nothing() -> None:
    path = f"{BASE}/permissions/own?operations=topic.unload&resource={TOPIC}"
    assert ask(path, seen())[1] == {"role": "", "allowed": []}
    assert ask(path, seen(), role="ops")[1] == {"role": "ops", "allowed": []}
