"""What a web page that is open somewhere can do to the web port, over real sockets: nothing."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.service.process import BrokerProcess

CONFIG = "/admin/v2/brokers/configuration"
RETENTION = "/admin/v2/namespaces/public/default/retention"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    words = ["--set", "headgateWebHostNames=proxy.example"]
    process = BrokerProcess(tmp_path_factory.mktemp("broker"), words).start()
    try:
        yield process
    finally:
        process.close()


def raw(
    broker: BrokerProcess, method: str, path: str, body: bytes = b"", *headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request; ``Host`` is the address unless given."""
    where = urlsplit(broker.admin_url)
    lines = [f"{method} {path} HTTP/1.1", "Connection: close", *headers]
    if not any(line.startswith("Host:") for line in headers):
        lines.append(f"Host: {where.netloc}")
    if body or method in ("POST", "PUT"):
        lines.append(f"Content-Length: {len(body)}")
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=10) as client:
        client.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        answer = b""
        while piece := client.recv(65_536):
            answer += piece
    head, _, rest = answer.partition(b"\r\n\r\n")
    first, *others = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in others)
    return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}, rest


AUDIT = '"operation":"http.request"'
JSON = "Content-Type: application/json"
PAGE = ("Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors")
LIMITS = b'{"retentionTimeInMinutes": 7, "retentionSizeInMB": 7}'


def test_what_a_page_sends_without_asking_changes_nothing(broker: BrokerProcess) -> None:
    """Text, forms and requests without a body need no leave of the server's."""
    before = raw(broker, "GET", RETENTION)[2]
    for body, kind in (
        (LIMITS, "Content-Type: text/plain;charset=UTF-8"),
        (LIMITS, "Content-Type: application/x-www-form-urlencoded"),
        (LIMITS, "X: y"),
    ):
        assert raw(broker, "POST", RETENTION, body, kind, *PAGE)[0] == 403
        assert raw(broker, "POST", RETENTION, body, kind)[0] == 415  # as an old browser
    setting = f"{CONFIG}/keepAliveIntervalSeconds/7"
    topic = "/admin/v2/persistent/public/default/t"
    assert raw(broker, "PUT", topic)[0] == 204
    for method, path in (
        ("POST", f"{CONFIG}/dispatchThrottlingRateInMsg/1"),
        ("POST", setting),
        ("POST", f"{topic}/subscription/s/skip_all"),
        ("POST", f"{topic}/all_subscription/expireMessages/1"),
        ("DELETE", topic),
    ):
        status, _, reply = raw(broker, method, path, b"", *PAGE)
        assert status == 403
        assert "https://evil.example" in json.loads(reply)["reason"]
    assert json.loads(raw(broker, "GET", f"{CONFIG}/values")[2]) == {}
    assert raw(broker, "GET", RETENTION)[2] == before


def test_another_name_of_the_address_is_refused(broker: BrokerProcess) -> None:
    for path in ("/admin/v2/clusters", "/metrics", "/admin/v2/headgate/explain", "/nothing"):
        status, _, reply = raw(broker, "GET", path, b"", "Host: evil.example")
        assert status == 421
        assert "headgateWebHostNames" in json.loads(reply)["reason"]
    status, _, _ = raw(broker, "POST", RETENTION, LIMITS, JSON, "Host: evil.example:8080")
    assert status == 421


def test_own_names_go_on(broker: BrokerProcess) -> None:
    for host in ("127.0.0.1", "localhost:8080", "[::1]:80", socket.gethostname(), "proxy.example"):
        assert raw(broker, "GET", "/admin/v2/clusters", b"", f"Host: {host}")[0] == 200
        assert raw(broker, "GET", "/metrics", b"", f"Host: {host}")[0] == 200
        assert raw(broker, "POST", RETENTION, LIMITS, JSON, f"Host: {host}")[0] == 204


def test_an_own_page_may_do_everything(broker: BrokerProcess) -> None:
    host = urlsplit(broker.admin_url).netloc
    page = (f"Origin: http://{host}", "Sec-Fetch-Site: same-origin")
    assert raw(broker, "POST", RETENTION, LIMITS, JSON, *page)[0] == 204
    proxied = ("Origin: https://proxy.example", "Sec-Fetch-Site: same-origin")
    assert raw(broker, "POST", RETENTION, LIMITS, JSON, *proxied)[0] == 204


def test_what_a_foreign_page_gets_it_cannot_read(broker: BrokerProcess) -> None:
    for path in ("/metrics", "/admin/v2/headgate/explain", "/admin/v2/clusters"):
        status, headers, _ = raw(broker, "GET", path, b"", *PAGE)
        assert status == 200
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert not [name for name in headers if name.startswith("access-control-")]
    asked = ("Origin: https://evil.example", "Access-Control-Request-Method: PUT")
    status, headers, _ = raw(broker, "OPTIONS", RETENTION, b"", *asked)
    assert status == 405
    assert not [name for name in headers if name.startswith("access-control-")]


def test_refusals_are_in_the_log(broker: BrokerProcess) -> None:
    raw(broker, "GET", "/metrics", b"", "Host: told.example")
    assert "421 from 127.0.0.1: Host 'told.example' is not a name of this broker" in broker.log()


def test_refusals_are_in_the_audit_log(tmp_path: Path) -> None:
    """Of a broker of its own: one client has ten such lines a minute."""
    broker = BrokerProcess(tmp_path).start()
    try:
        assert raw(broker, "GET", "/admin/v2/tenants", b"", "Host: audited.example")[0] == 421
        assert raw(broker, "G?T", RETENTION)[0] == 400
        first, second = (line for line in broker.log().splitlines() if AUDIT in line)
    finally:
        broker.close()
    assert "audited.example" in first
    assert "Invalid HTTP request" in second
    entry = json.loads(first[first.index("{") :])
    assert entry["address"].startswith("127.0.0.1:")
    assert (entry["role"], entry["request"], entry["status"]) == ("", "GET", 421)
