"""Names of a web server, and what a browser may do with its responses."""

from __future__ import annotations

import pytest

from headgate.base.web_hosts import (
    OWN_HEADERS,
    HostNames,
    host_without_port,
    names_user,
    plain_host,
)

NAMES = HostNames(["node-1", ""], "proxy.example, *.svc.local")


@pytest.mark.parametrize(
    "host",
    ["node-1", "NODE-1.", "localhost", "a.localhost", "10.0.0.1", "[::1]", "proxy.example",
     "a.svc.local"],
)  # fmt: skip
def test_own_and_configured_names_and_addresses_pass(host: str) -> None:
    assert NAMES.has(host)


@pytest.mark.parametrize("host", ["", "evil.example", "svc.local", "node-1.evil.example", "10.1"])
def test_others_do_not(host: str) -> None:
    assert not NAMES.has(host)


def test_a_port_is_no_part_of_a_name() -> None:
    assert host_without_port("node-1:8081") == "node-1"
    assert host_without_port("[::1]:8081") == "[::1]"
    assert host_without_port("node-1:") == "node-1"
    assert host_without_port("node-1") == "node-1"
    assert host_without_port(":8081") == ""
    for odd in (
        "[::1]evil.example:80", "[::1]:80@evil.example", "node-1:80@evil.example",
        "node-1:80:90", "node-1:\N{ARABIC-INDIC DIGIT ONE}",
    ):  # fmt: skip
        assert host_without_port(odd) == odd
        assert not NAMES.has(odd)
    assert plain_host(" [::1] ") == "::1"


def test_no_foreign_page_may_use_a_response() -> None:
    assert dict(OWN_HEADERS)[b"cross-origin-resource-policy"] == b"same-origin"


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://u@h", True), ("http://u:p@h/x", True), ("u:p@h:1", True), ("pulsar://u@a,b", True),
        ("//u:p@h", True), ("http:///u:p@h", True),
        ("http://h/x@y", False), ("http://h?a=b@c", False), ("h:1#@", False), ("", False),
    ],
)  # fmt: skip
def test_a_url_that_names_a_user(url: str, named: bool) -> None:
    assert names_user(url) is named
