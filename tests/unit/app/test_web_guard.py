"""The web port serves tools and refuses foreign pages."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from starlette.types import Message, Receive, Scope, Send

from headgate.app.web_guard import SETTING, WebGuard, own_host_names, refusal_of
from headgate.base.web_hosts import HostNames
from headgate.policy.settings import Settings

NAMES = HostNames(["broker.internal", "0.0.0.0", "[fd00::1]"], "pulsar.example, *.svc.local")


def scope_of(
    method: str = "GET", path: str = "/admin/v2/clusters", version: str = "1.1", **headers: str
) -> Scope:
    headers.setdefault("host", "localhost:8080")
    raw = [
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, value in headers.items()
        if value != "absent"
    ]
    return {
        "type": "http", "method": method, "path": path, "headers": raw, "http_version": version,
        "client": ("127.0.0.1", 5),
    }  # fmt: skip


def status(method: str = "GET", path: str = "/admin/v2/clusters", **headers: str) -> int:
    """Of the refusal; 0 if the request is taken."""
    refusal = refusal_of(scope_of(method, path, **headers), NAMES)
    return refusal[0] if refusal else 0


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "localhost:8080", "LOCALHOST.", "app.localhost:80", "127.0.0.1:8080",
        "10.1.2.3", "[::1]:8080", "[fd00::1]", "broker.internal", "Broker.Internal:9",
        "pulsar.example:1", "a.svc.local", "a.b.svc.local:8080",
    ],
)  # fmt: skip
def test_own_names_and_addresses(host: str) -> None:
    assert status(host=host) == 0
    assert status("POST", host=host) == 0


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
        "broker.internal.evil", "xbroker.internal", "svc.local", "xsvc.local", "", ":8080",
        "0x7f000001", "127.1", "localhost:1@evil.example", "pulsar.example@evil",
        "localhost@evil.example", "\xff",
    ],
)  # fmt: skip
def test_other_names(host: str) -> None:
    for method in ("GET", "POST", "OPTIONS", "HEAD"):
        assert status(method, host=host) == 421


def test_what_to_set_is_said() -> None:
    refusal = refusal_of(scope_of(host="metrics.example:8080"), NAMES)
    assert refusal is not None
    assert "'metrics.example:8080'" in refusal[1]
    assert SETTING in refusal[1]
    long = refusal_of(scope_of(host="x" * 5_000), NAMES)
    assert long is not None
    assert len(long[1]) < 400


def test_any_name_may_be_allowed() -> None:
    assert HostNames([], "*").has("evil.example")
    assert not HostNames([], "").has("evil.example")


def test_names_of_a_broker() -> None:
    settings = Settings()
    settings.set("advertisedAddress", "broker-7.example")
    settings.set("headgateWebHostNames", "proxy.example")
    names = own_host_names(settings)
    assert names.has("broker-7.example")
    assert names.has("proxy.example")
    assert not names.has("example")


def test_hosts_that_are_missing_or_two() -> None:
    assert status(host="absent") == 400
    assert refusal_of(scope_of(version="1.0", host="absent"), NAMES) is None
    scope = scope_of()
    scope["headers"].append((b"host", b"evil.example"))
    refusal = refusal_of(scope, NAMES)
    assert refusal is not None
    assert refusal[0] == 400


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 0),  # curl, pulsar-admin, the JDK's client
        ({"origin": "http://localhost:8080", "sec_fetch_site": "same-origin"}, 0),
        ({"origin": "https://LOCALHOST:8080"}, 0),
        ({"sec_fetch_site": "none"}, 0),
        ({"origin": "https://pulsar.example"}, 0),  # a proxy that puts its own Host there
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "http://localhost"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "http://[::1"}, 403),
        ({"origin": "http://localhost:8080.evil.example"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "Same-Site"}, 403),
        ({"origin": "http://localhost:8080", "sec_fetch_site": "cross-site"}, 403),
    ],
)
def test_foreign_pages_change_nothing(headers: dict[str, str], expected: int) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert status(method, **headers) == expected
    assert status("GET", **headers) == 0
    assert status("GET", "/admin/v2/brokers/backlog-quota-check/", **headers) == expected


@pytest.mark.parametrize(
    ("scheme", "host", "origin", "expected"),
    [
        ("https", "localhost", "https://localhost", 0),
        ("https", "localhost", "http://localhost", 403),  # of another port, which has no TLS
        ("https", "localhost:8443", "http://localhost:8443", 403),
        ("http", "localhost", "https://localhost", 0),  # through a proxy that takes TLS off
        ("https", "pulsar.example", "http://pulsar.example", 0),  # as the setting says
    ],
)
def test_a_page_without_tls_changes_nothing_over_tls(
    scheme: str, host: str, origin: str, expected: int
) -> None:
    scope = scope_of("POST", host=host, origin=origin) | {"scheme": scheme}
    refusal = refusal_of(scope, NAMES)
    assert (refusal[0] if refusal else 0) == expected


@pytest.mark.parametrize(
    "query", [b"checkAllowAutoCreation=true", b"check%41llowAutoCreation=true"]
)
def test_a_foreign_page_creates_no_topic_by_reading_its_partitions(query: bytes) -> None:
    """An image of a page could, where topics are created partitioned."""
    path = "/admin/v2/persistent/public/default/new/partitions"
    asked = scope_of("GET", path, sec_fetch_site="cross-site")
    assert refusal_of(asked, NAMES) is None
    refusal = refusal_of({**asked, "query_string": query}, NAMES)
    assert refusal is not None
    assert refusal[0] == 403
    assert refusal_of({**scope_of("GET", path), "query_string": query}, NAMES) is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 0),
        ({"content_length": "0"}, 0),
        ({"content_length": "0", "content_type": "application/x-www-form-urlencoded"}, 0),
        ({"content_length": "2", "content_type": "application/json"}, 0),
        ({"content_length": "2", "content_type": "Application/JSON; charset=utf-8"}, 0),
        ({"content_length": "2", "content_type": "application/vnd.x-metadata+json"}, 0),
        ({"content_length": "2"}, 415),
        ({"transfer_encoding": "chunked"}, 415),
        ({"transfer_encoding": "chunked", "content_type": "application/json"}, 0),
        ({"content_length": "2", "content_type": "text/plain"}, 415),
        ({"content_length": "2", "content_type": "application/x-www-form-urlencoded"}, 415),
        ({"content_length": "2", "content_type": "multipart/form-data; boundary=x"}, 415),
        ({"content_length": "2", "content_type": "text/plain; application/json"}, 415),
        ({"content_length": "2", "content_type": "application/jsonx"}, 415),
    ],
)  # fmt: skip
def test_bodies_are_json_by_their_type(headers: dict[str, str], expected: int) -> None:
    assert status("POST", **headers) == expected


def test_answers_to_a_form() -> None:
    headers = {"content_length": "2", "content_type": "application/x-www-form-urlencoded"}
    refusal = refusal_of(scope_of("POST", **headers), NAMES)
    assert refusal is not None
    assert "'Content-Type: application/json'" in refusal[1]


# As an application ------------------------------------------------------------------------------


async def _app(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": [(b"x", b"y")]})
    await send({"type": "http.response.body", "body": b""})


async def _receive() -> Message:
    return {"type": "http.disconnect"}


def answer(scope: Scope, guard: WebGuard | None = None) -> tuple[int, dict[bytes, bytes], bytes]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run((guard or WebGuard(_app, NAMES))(scope, _receive, send))
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


def test_answers_belong_to_their_origin() -> None:
    for host, expected in (("localhost", 204), ("evil.example", 421)):
        found, headers, _ = answer(scope_of(host=host))
        assert found == expected
        assert headers[b"cross-origin-resource-policy"] == b"same-origin"
        assert headers[b"x-content-type-options"] == b"nosniff"
        assert not any(name.startswith(b"access-control") for name in headers)
    assert answer(scope_of())[1][b"x"] == b"y"


def test_a_refusal_is_json_with_its_reason() -> None:
    found, headers, body = answer(scope_of("POST", origin="https://evil.example"))
    assert found == 403
    assert headers[b"content-type"] == b"application/json"
    assert headers[b"content-length"] == str(len(body)).encode()
    assert "https://evil.example" in json.loads(body)["reason"]
    assert answer(scope_of("HEAD", host="evil.example"))[2] == b""


def test_refusals_are_reported_in_the_log_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    guard = WebGuard(_app, NAMES)
    with caplog.at_level(logging.WARNING):
        for number in range(50):
            answer(scope_of(host=f"evil{number % 25}.example"), guard)
    assert len(caplog.messages) == 8
    assert "421 from 127.0.0.1: Host 'evil0.example'" in caplog.messages[0]


def test_each_refusal_is_noted_with_its_address_and_method() -> None:
    noted: list[tuple[int, str, str, str]] = []
    guard = WebGuard(_app, NAMES, note=lambda *facts: noted.append(facts))
    answer(scope_of(), guard)
    assert not noted
    answer(scope_of(host="evil.example"), guard)
    answer(scope_of("DELETE", origin="null") | {"client": None}, guard)
    limited = WebGuard(_app, NAMES, lambda: "Too many", lambda *facts: noted.append(facts))
    answer(scope_of(), limited)
    assert [(status, address, method) for status, address, _, method in noted] == [
        (421, "127.0.0.1:5", "GET"), (403, "", "DELETE"), (429, "127.0.0.1:5", "GET"),
    ]  # fmt: skip
    assert [reason[:8] for _, _, reason, _ in noted] == ["Host 'ev", "A page o", "Too many"]


def test_too_many_requests_come_before_all_else() -> None:
    guard = WebGuard(_app, NAMES, lambda: "Too many requests")
    found, headers, body = answer(scope_of(host="evil.example"), guard)
    assert (found, json.loads(body)) == (429, {"reason": "Too many requests"})
    assert headers[b"retry-after"] == b"1"
    assert headers[b"x-content-type-options"] == b"nosniff"


def test_every_response_has_the_headers_of_an_api() -> None:
    for host, expected in (("broker.internal", 204), ("evil.example", 421)):
        found, headers, _ = answer(scope_of(host=host))
        assert found == expected
        assert headers[b"content-security-policy"] == b"default-src 'none'; frame-ancestors 'none'"
        assert headers[b"referrer-policy"] == b"no-referrer"
        assert headers[b"cache-control"] == b"no-store"
        assert headers[b"cross-origin-resource-policy"] == b"same-origin"
        assert not [name for name in headers if name.startswith(b"access-control-")]
        assert b"strict-transport-security" not in headers


@pytest.mark.parametrize(
    ("host", "is_told"),
    [
        ("broker.internal:8443", True), ("localhost:8443", False), ("x.localhost", False),
        ("absent", False),
    ],
)  # fmt: skip
def test_browsers_are_told_to_stay_with_tls_except_on_loopback(host: str, is_told: bool) -> None:
    scope = {**scope_of(host=host, version="1.0"), "scheme": "https"}
    _, headers, _ = answer(scope)
    assert (b"strict-transport-security" in headers) == is_told


def doubled(first: str, second: str, name: str, **more: str) -> int:
    """The status of a change with a header twice."""
    scope = scope_of("POST", **more)
    scope["headers"] += [(name.encode(), first.encode()), (name.encode(), second.encode())]
    refusal = refusal_of(scope, NAMES)
    return refusal[0] if refusal else 0


@pytest.mark.parametrize(
    ("name", "own", "foreign", "expected"),
    [
        ("origin", "http://localhost:8080", "http://evil.example", 403),
        ("sec-fetch-site", "same-origin", "cross-site", 403),
        ("content-type", "application/json", "text/plain", 415),
    ],
)
def test_a_second_header_does_not_hide_the_first(
    name: str, own: str, foreign: str, expected: int
) -> None:
    """A proxy may add one of its own to that of the browser."""
    more = {"content_length": "2"}
    if name != "content-type":
        more["content_type"] = "application/json"
    assert doubled(own, own, name, **more) == 0
    assert doubled(foreign, own, name, **more) == expected
    assert doubled(own, foreign, name, **more) == expected
