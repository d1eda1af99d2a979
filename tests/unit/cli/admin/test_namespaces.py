"""Namespaces: what a new one is sent with, and how its topics are asked for."""

from __future__ import annotations

from headgate.cli.admin.namespaces import new_policies
from tests.unit.cli.admin.fake_server import FakeServer, admin


def test_a_new_namespace_is_sent_with_empty_policies() -> None:
    policies = new_policies({"clusters": None, "numBundles": 0})
    assert policies["replication_clusters"] == []
    assert not {"bundles", "clusterThatCanDeleteNamespace"} & policies.keys()
    policies = new_policies({"clusters": ["a", "b"], "numBundles": 4})
    assert policies["bundles"] == {"numBundles": 4}
    assert policies["replication_clusters"] == ["a", "b"]
    assert "clusterThatCanDeleteNamespace" not in policies
    alone = new_policies({"clusters": ["a"], "numBundles": 0})
    assert alone["clusterThatCanDeleteNamespace"] == "a"


def test_topics_of_one_mode(server: FakeServer) -> None:
    server.answer(["persistent://t/n/x"])
    result = admin("namespaces", "topics", "t/n", "-m", "persistent", "-ist")
    assert result.output == "persistent://t/n/x\n"
    assert server.asked[0][1] == (
        "/admin/v2/namespaces/t/n/topics?mode=PERSISTENT&includeSystemTopic=true"
    )


def test_an_unset_policy_is_null(server: FakeServer) -> None:
    assert admin("namespaces", "get-dispatch-rate", "t/n").output == "null\n"


def test_retention_may_be_without_end(server: FakeServer) -> None:
    result = admin("namespaces", "set-retention", "t/n", "-t", "-1", "-s", "-1")
    assert result.exit_code == 0
    assert server.asked[0][2] == '{"retentionTimeInMinutes":-1,"retentionSizeInMB":-1}'


def test_deleting(server: FakeServer) -> None:
    admin("namespaces", "delete", "t/n", "--force")
    assert server.asked == [("DELETE", "/admin/v2/namespaces/t/n?force=true", "")]
