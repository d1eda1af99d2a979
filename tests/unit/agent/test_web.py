"""The agent's routes, asked without a socket."""

from __future__ import annotations

import pytest

from headgate.agent import web, web_turns
from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.metrics import PortCertificate
from headgate.agent.shared_history import SharedHistory
from tests.unit.agent.looks import TOPIC, backlog, look
from tests.unit.agent.watched import Watch, ask


def test_the_largest_backlogs() -> None:
    status, report, _ = ask("/admin/v2/headgate/explain?count=3")
    assert (status, report["count"]) == (200, 3)
    assert ask("/admin/v2/headgate/explain")[1]["count"] == 10


def test_the_largest_backlogs_say_why_looks_fail() -> None:
    assert ask("/admin/v2/headgate/explain")[1]["notSeen"] == ["the broker's settings"]


@pytest.mark.parametrize("count", ["0", "1001", "x", "-1", "99999", ""])
def test_a_count_that_is_not_allowed_is_refused(count: str) -> None:
    status, body, _ = ask(f"/admin/v2/headgate/explain?count={count}")
    assert status == 400
    assert body["reason"] == f"count is {count!r}: 1 to 1000 is allowed"


def test_a_topic_and_its_partitions() -> None:
    watch = Watch("prod")
    for partition in (10, 2):
        watch.history.note_look(look(1, backlog(), topic=f"{TOPIC}-partition-{partition}"))
    path = "/admin/v2/headgate/explain/persistent/acme/orders/paid"
    status, report, _ = ask(path, watch)
    assert (status, report["topic"]) == (200, TOPIC)
    parts = ask(f"{path}?perPartition=true", watch)[1]["perPartition"]
    assert [part["topic"] for part in parts] == [f"{TOPIC}-partition-{n}" for n in (2, 10)]
    assert ask(f"{path}?perPartition=yes", watch)[0] == 400


def test_reports_on_partitions_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "SUBSCRIPTIONS_OF_PARTITIONS_MAX", 2)
    watch = Watch("prod", SharedHistory(ClusterHistory("prod")))
    for partition in range(5):
        watch.history.note_look(look(1, backlog(), topic=f"{TOPIC}-partition-{partition}"))
    path = "/admin/v2/headgate/explain/persistent/acme/orders/paid?perPartition=true"
    report = ask(path, watch)[1]
    assert len(report["perPartition"]) == 2
    assert report["notSeen"][-1] == "3 more partitions one by one"


def test_a_topic_that_was_not_seen_is_404_and_a_wrong_name_is_refused() -> None:
    status, body, _ = ask("/admin/v2/headgate/explain/persistent/a/b/none")
    assert (status, body["reason"][:40]) == (404, "Topic persistent://a/b/none was not seen")
    assert ask("/admin/v2/headgate/explain/durable/a/b/c")[0] == 404
    assert ask("/admin/v2/headgate/explain/persistent/a$/b/c")[0] == 400


def test_names_of_clusters_are_kept_apart() -> None:
    prod, test = Watch("prod"), Watch("test")
    prod.history.note_look(look(1, backlog()))
    path = "/admin/v2/headgate/explain/persistent/acme/orders/paid"
    status, body, _ = ask(path, prod, test)
    assert (status, body["reason"]) == (
        400, "cluster is missing: name one of prod, test (--cluster NAME, ?cluster=NAME)",
    )  # fmt: skip
    assert ask(f"{path}?cluster=prod", prod, test)[0] == 200
    assert ask(f"{path}?cluster=test", prod, test)[0] == 404
    assert ask(f"{path}?cluster=other", prod, test)[1]["reason"].startswith("Cluster other is not")


def test_metrics_are_of_all_clusters() -> None:
    prod = Watch("prod")
    prod.history.note_look(look(1, backlog(backlog=7)))
    prod.history.note_look(look(61, backlog(backlog=7)))
    status, body, kind = ask("/metrics", prod, Watch("test"))
    assert (status, kind) == (200, web.METRICS_TYPE)
    assert b'headgate_agent_looks_total{cluster="test"} 1\n' in body
    assert b'state="no_consumer",dimension="",consumer=""} 60.000\n' in body


def test_health_is_about_the_agent_and_not_about_clusters() -> None:
    status, body, _ = ask("/health")
    assert (status, body["status"]) == (200, "ok")
    status, body, _ = ask("/health", Watch("prod"), Watch("test", is_stalled=True))
    assert (status, body["reason"]) == (503, "The watch of test hangs: restart the agent")


def test_other_paths_and_methods_have_a_reason() -> None:
    assert ask("/admin/v2/headgate/broker?count=200")[:2] == (
        404, {"reason": "An agent has no /admin/v2/headgate/broker: ask a broker of the cluster"},
    )  # fmt: skip
    assert ask("/metrics", method="POST")[:2] == (405, {"reason": "Method Not Allowed"})


def test_requests_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_turns, "WAITING_MAX", 0)
    status, body, _ = ask("/metrics")
    assert (status, body["reason"]) == (503, "0 requests wait already: try again later")


def test_a_timeline_is_asked_for_as_of_a_broker() -> None:
    watch = Watch("prod")
    watch.history.note_look(look(1, backlog()))
    path = f"/admin/v2/headgate/explain/{TOPIC.replace('://', '/')}"
    for where in (path, "/admin/v2/headgate/explain"):
        assert ask(where, watch)[1]["timeline"] is False
        assert ask(f"{where}?timeline=true", watch)[1]["timeline"] is True
        assert ask(f"{where}?timeline=yes", watch)[0] == 400


def test_health_tells_of_a_certificate_that_ends() -> None:
    assert ask("/health")[1]["tlsProblem"] is None
    certificate = PortCertificate(1, 0, "it ends")
    assert ask("/health", certificate=certificate)[1]["tlsProblem"] == "it ends"
