"""Requests about properties, and about what topics store."""

from __future__ import annotations

import json

from tests.unit.cli.admin.fake_server import FakeServer, Reply, admin

T = "/admin/v2/persistent/t/n/x"


def test_properties(server: FakeServer) -> None:
    admin("topics", "update-properties", "t/n/x", "-p", "a=1", "-p", "b=2")
    admin("topics", "remove-properties", "t/n/x", "-k", "a&b")
    assert server.asked == [
        ("PUT", f"{T}/properties", '{"a":"1","b":"2"}'),
        ("DELETE", f"{T}/properties?key=a%26b", ""),
    ]
    server.answer({"a": "1"})
    assert admin("topics", "get-properties", "t/n/x").output == '{\n  "a" : "1"\n}\n'


def test_counts_of_a_backlog(server: FakeServer) -> None:
    server.answer({"entries": 2, "aborted": False})
    result = admin("topics", "analyze-backlog", "t/n/x", "-s", "s")
    assert result.output == "entries    2\naborted    false\n"
    admin("topics", "analyze-backlog", "t/n/x", "-s", "s", "-p", "7:8")
    path = f"{T}/subscription/s/analyzeBacklog"
    assert server.asked[0] == ("POST", path, "")
    assert json.loads(server.asked[1][2])["entryId"] == 8
    server.replies = [Reply(200, b"400")]
    assert admin("topics", "get-backlog-size", "t/n/x", "-m", "7:8").output == "400\n"
    assert server.asked[-1] == (
        "PUT", f"{T}/backlogSize", '{"ledgerId":7,"entryId":8,"partitionIndex":-1}',
    )  # fmt: skip


def test_removal(server: FakeServer) -> None:
    for verb in ("trim-topic", "truncate", "compact", "offload"):
        assert admin("topics", verb, "t/n/x").exit_code == 0
    assert [(method, path) for method, path, _ in server.asked] == [
        ("POST", f"{T}/trim"), ("DELETE", f"{T}/truncate"), ("PUT", f"{T}/compaction"),
        ("PUT", f"{T}/offload"),
    ]  # fmt: skip


def test_processes_that_never_ran(server: FakeServer) -> None:
    server.answer({"status": "NOT_RUN", "lastError": ""})
    assert admin("topics", "compaction-status", "t/n/x", "-w").output == (
        "Compaction has not been run for persistent://t/n/x since broker startup\n"
    )
    server.answer({"status": "RUNNING"})
    result = admin("topics", "offload-status", "t/n/x")
    assert result.output == "Offload of persistent://t/n/x: RUNNING\n"


def test_clusters_and_shadows(server: FakeServer) -> None:
    server.answer(["standalone"])
    result = admin("topics", "get-replication-clusters", "t/n/x", "-ap")
    assert result.output == "standalone\n"
    admin("topics", "set-shadow-topics", "t/n/x", "-t", "a,b")
    assert [path for _, path, _ in server.asked] == [
        f"{T}/replication?applied=true", f"{T}/shadowTopics"
    ]  # fmt: skip
    assert server.asked[1][2] == '["a","b"]'
