"""Requests about permissions."""

from __future__ import annotations

import pytest

from tests.unit.cli.admin.fake_server import FakeServer, admin

N = "/admin/v2/namespaces/t/n"
T = "/admin/v2/persistent/t/n/x"


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("namespaces grant-permission t/n --role a/b --actions produce,consume",
         ("POST", f"{N}/permissions/a%2Fb", '["produce","consume"]')),
        ("namespaces revoke-permission t/n -r a", ("DELETE", f"{N}/permissions/a", "")),
        ("namespaces grant-subscription-permission t/n -s s -rs a,b",
         ("POST", f"{N}/permissions/subscription/s", '["a","b"]')),
        ("namespaces revoke-subscription-permission t/n --subscription s --role a",
         ("DELETE", f"{N}/permissions/s/a", "")),
        ("namespaces set-subscription-auth-mode t/n -m Prefix",
         ("POST", f"{N}/subscriptionAuthMode", '"Prefix"')),
        ("topics grant-permission t/n/x -r a -a consume",
         ("POST", f"{T}/permissions/a", '["consume"]')),
        ("topics revoke-permission t/n/x --role a", ("DELETE", f"{T}/permissions/a", "")),
    ],
)  # fmt: skip
def test_changes(server: FakeServer, words: str, request_: tuple[str, str, str]) -> None:
    result = admin(*words.split())
    assert (result.exit_code, result.output) == (0, "")
    assert server.asked == [request_]


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("namespaces permissions t/n", f"{N}/permissions"),
        ("namespaces subscription-permission t/n", f"{N}/permissions/subscription"),
        ("topics permissions t/n/x", f"{T}/permissions"),
    ],
)
def test_grants_are_printed_as_a_map(server: FakeServer, words: str, path: str) -> None:
    server.answer({"a": ["produce", "consume"]})
    assert admin(*words.split()).output == "a    [produce, consume]\n"
    assert server.asked == [("GET", path, "")]


def test_the_mode_is_printed(server: FakeServer) -> None:
    server.answer("None")
    assert admin("namespaces", "get-subscription-auth-mode", "t/n").output == "None\n"


def test_values_that_are_not_allowed_are_no_requests(server: FakeServer) -> None:
    words = ("namespaces", "grant-permission", "t/n", "--role", "a", "--actions", "write")
    result = admin(*words)
    assert result.exit_code == 1
    assert "Illegal auth action 'write'. Possible values: [produce, consume," in result.output
    result = admin("namespaces", "set-subscription-auth-mode", "t/n", "-m", "Suffix")
    assert "'Suffix' is not one of [None, Prefix]" in result.output
    assert server.asked == []


def test_the_reason_of_a_decision(server: FakeServer) -> None:
    server.answer({"allowed": False, "reason": "role a has no grant"})
    topic = "persistent://t/n/x"
    result = admin("permissions", "check", "a", "topic.consume", topic, "-s", "s")
    assert result.output == "refused: role a has no grant\n"
    server.answer({"allowed": True, "reason": "role a is a super user"})
    result = admin("permissions", "check", "a", "tenant.list", "", "--proxy", "p")
    assert result.output == "allowed: role a is a super user\n"
    path = "/admin/v2/headgate/permissions?role=a"
    assert [asked for _, asked, _ in server.asked] == [
        f"{path}&operation=topic.consume&resource=persistent%3A%2F%2Ft%2Fn%2Fx&subscription=s",
        f"{path}&operation=tenant.list&resource=&proxy=p",
    ]
