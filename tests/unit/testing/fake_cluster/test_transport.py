"""What a fake cluster answers to which path."""

from __future__ import annotations

import json

import pytest

from headgate.access.admin_api import UnreachableError
from headgate.agent.transport import RawReply
from headgate.testing.clock import ManualClock
from headgate.testing.fake_cluster import FakeCluster, FakeTopic, FakeTransport, Faults
from headgate.testing.fake_cluster.transport import gibberish

NAME = "persistent://acme/shop/orders"
PATH = "/admin/v2/persistent/acme/shop/orders"


def transport(faults: Faults | None = None) -> FakeTransport:
    cluster = FakeCluster(["a:1", "b:1"], settings={"x": "1"})
    cluster.add([FakeTopic(NAME, policies={"dispatchRate": {"dispatchThrottlingRateInMsg": 5}})])
    cluster.move(NAME, "b:1")
    cluster.partitioned["persistent://acme/shop/parts"] = 3
    cluster.namespaces["acme/shop"] = {"policies": 1}
    return FakeTransport(cluster, ManualClock(), faults)


def ask(to: FakeTransport, path: str, broker: str = "b:1") -> RawReply:
    return to.get(f"http://{broker}{path}", {}, 5.0)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/admin/v2/brokers", ["a:1", "b:1"]),
        ("/admin/v2/brokers/configuration/runtime", {"x": "1"}),
        ("/admin/v2/namespaces/acme/shop", {"policies": 1}),
        ("/admin/v2/namespaces/acme/other", {}),
        ("/admin/v2/persistent/acme/shop", [NAME]),
        (f"{PATH}/partitions", {"partitions": 0}),
        ("/admin/v2/persistent/acme/shop/parts/partitions", {"partitions": 3}),
        (f"{PATH}/dispatchRate", {"dispatchThrottlingRateInMsg": 5}),
    ],
)
def test_answers(path: str, body: object) -> None:
    reply = ask(transport(), path)
    assert (reply.status, json.loads(reply.body)) == (200, body)


def test_what_is_not_set_has_an_empty_answer() -> None:
    assert ask(transport(), f"{PATH}/publishRate") == (
        204, {"content-type": "application/json"}, b"",
    )  # fmt: skip


@pytest.mark.parametrize(
    "path",
    ["/admin/v2/headgate/explain", "/x", "/admin/v2/persistent/acme/shop/none/stats",
     "/admin/v2/persistent/acme/shop/none/partitions", "/admin/v2/brokers/none"],
)  # fmt: skip
def test_what_is_not_there(path: str) -> None:
    assert ask(transport(), path).status == 404


def test_only_the_owner_answers_for_a_topic() -> None:
    to = transport()
    reply = ask(to, f"{PATH}/stats?x=1", "a:1")
    assert (reply.status, reply.headers["location"]) == (307, f"http://b:1{PATH}/stats?x=1")
    assert ask(to, f"{PATH}/stats").status == 200
    assert json.loads(ask(to, "/lookup/v2/topic/persistent/acme/shop/orders").body)["httpUrl"] == (
        "http://b:1"
    )
    assert json.loads(ask(to, "/admin/v2/broker-stats/topics", "a:1").body) == {}
    assert to.asked == {"a:1": 2, "b:1": 2}


def test_time_passes_with_each_answer() -> None:
    to = transport(Faults(took_s=0.5))
    ask(to, "/admin/v2/brokers")
    assert to.at_ns == 500_000_000


def test_faults() -> None:
    faults = Faults(failing_call=0, gone={"a:1"})
    to = transport(faults)
    assert ask(to, "/admin/v2/brokers").status == 500
    with pytest.raises(UnreachableError, match="a:1 did not answer within 5 s"):
        ask(to, "/admin/v2/brokers", "a:1")
    assert to.at_ns == 3_005_000_000
    faults.status = 429
    assert ask(to, "/admin/v2/brokers").status == 429
    faults.status, faults.is_page = None, True
    assert ask(to, "/admin/v2/brokers").body.startswith(b"<html")
    faults.is_page, faults.refused = False, lambda path, token: 403
    assert ask(to, "/admin/v2/brokers").status == 403


def test_gibberish_spoils_numbers_alone() -> None:
    found = json.loads(gibberish(b'{"a": 1, "b": true, "c": "x", "d": [1, 2, 3]}'))
    assert (found["b"], found["c"], found["a"], found["d"][:2]) == (True, "x", -7, [1e300, 3 - 1])
    assert gibberish(b"") == b""
