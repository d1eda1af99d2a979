"""Requests about bundles, backlogs and properties of namespaces."""

from __future__ import annotations

import pytest

from tests.unit.cli.admin.fake_server import FakeServer, Reply, admin

N = "/admin/v2/namespaces/t/n"
BUNDLE = "0x00000000_0x40000000"


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        (["unload", "t/n"], ("PUT", f"{N}/unload")),
        (
            ["unload", "t/n", "-b", BUNDLE, "-d", "b:1"],
            ("PUT", f"{N}/{BUNDLE}/unload?destinationBroker=b%3A1"),
        ),
        (["split-bundle", "t/n", "-b", BUNDLE], ("PUT", f"{N}/{BUNDLE}/split")),
        (["clear-backlog", "t/n", "-force"], ("POST", f"{N}/clearBacklog")),
        (["clear-backlog", "t/n", "-s", "a/b", "--force"], ("POST", f"{N}/clearBacklog/a%2Fb")),
        (
            ["clear-backlog", "t/n", "-s", "s", "-b", BUNDLE, "--force"],
            ("POST", f"{N}/{BUNDLE}/clearBacklog/s"),
        ),
        (["unsubscribe", "t/n", "-s", "s"], ("POST", f"{N}/unsubscribe/s")),
        (["unsubscribe", "t/n", "-s", "s", "-b", BUNDLE], ("POST", f"{N}/{BUNDLE}/unsubscribe/s")),
        (["clear-properties", "t/n"], ("DELETE", f"{N}/properties")),
        (["set-property", "t/n", "-k", "a", "-v", "b c"], ("PUT", f"{N}/property/a/b%20c")),
    ],
)
def test_one_request_each(server: FakeServer, words: list[str], request_: tuple[str, str]) -> None:
    result = admin("namespaces", *words)
    assert (result.exit_code, result.output) == (0, "")
    assert server.asked == [(*request_, "")]


def test_a_backlog_is_cleared_after_a_question(server: FakeServer) -> None:
    result = admin("namespaces", "clear-backlog", "t/n")
    assert result.exit_code == 1
    assert "Are you sure you want to clear the backlog?" in result.output
    assert server.asked == []


def test_properties_go_together_or_alone(server: FakeServer) -> None:
    admin("namespaces", "set-properties", "t/n", "-p", "a=1,b=2", "-p", "c=3")
    admin("namespaces", "set-clusters", "t/n", "-c", "x,y")
    assert server.asked == [
        ("PUT", f"{N}/properties", '{"a":"1","b":"2","c":"3"}'),
        ("POST", f"{N}/replication", '["x","y"]'),
    ]
    server.replies = [Reply(200, b"v")]
    for verb in ("get-property", "remove-property"):
        assert admin("namespaces", verb, "t/n", "-k", "a").output == "v\n"
    server.replies = [Reply(204)]
    assert admin("namespaces", "get-property", "t/n", "-k", "a").output == "null\n"
    server.answer(["standalone"])
    assert admin("namespaces", "get-clusters", "t/n").output == "standalone\n"
    server.answer({"a": "1"})
    assert admin("namespaces", "get-properties", "t/n").output == '{\n  "a" : "1"\n}\n'
