"""Names of clusters, with the broker's own marked."""

from __future__ import annotations

from tests.unit.cli.admin.fake_server import FakeServer, admin


def test_the_own_cluster_is_marked_on_request(server: FakeServer) -> None:
    server.answer(["east", "west"], {"clusterName": "west"})
    assert admin("clusters", "list").output == "east\nwest\n"
    server.answer(["east", "west"], {"clusterName": "west"})
    assert admin("clusters", "list", "--current").output == "east\nwest(*)\n"


def test_one_cluster(server: FakeServer) -> None:
    server.answer({"serviceUrl": "http://b:1"})
    assert admin("clusters", "get", "east").output == '{\n  "serviceUrl" : "http://b:1"\n}\n'
    assert server.asked == [("GET", "/admin/v2/clusters/east", "")]
