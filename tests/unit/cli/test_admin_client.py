"""One request to an admin API, and one sentence when the API does not answer."""

from __future__ import annotations

import http.client
import socket

import pytest

from headgate.cli.admin_client import AdminUrlError, UnreachableError, ask, split_url
from tests.unit.cli.admin.fake_server import FakeServer, Reply


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    fake = FakeServer()
    fake.install(monkeypatch)
    return fake


def test_a_get_has_no_body_and_a_post_says_what_its_body_is(server: FakeServer) -> None:
    server.replies = [Reply(404, b"text")]
    reply, body = ask("http://b:1/proxy/", "/path?a=b", timeout_s=2.5)
    assert (reply.status, body, server.timeout_s) == (404, b"text", 2.5)
    assert server.asked == [("GET", "/proxy/path?a=b", "")]
    ask("b:1", "/path", timeout_s=1, method="POST", body=b"{}")
    assert server.asked[-1] == ("POST", "/path", "{}")
    assert server.headers == {"Content-Type": "application/json"}
    ask("b:1", "/path", timeout_s=1, method="DELETE")
    assert (server.asked[-1], server.headers) == (("DELETE", "/path", ""), {})


@pytest.mark.parametrize(
    "url", ["pulsar://b:6650", "http://", "http://b:99999", "http://b:0", "http://[::1", ""]
)
def test_urls_that_cannot_be(server: FakeServer, url: str) -> None:
    with pytest.raises(AdminUrlError) as caught:
        ask(url, "/", timeout_s=1)
    assert str(caught.value) == f"{url!r}; use http://HOST:PORT of the admin API"
    assert server.asked == []


@pytest.mark.parametrize(
    "failure", [UnicodeError("label too long"), http.client.InvalidURL("a space")]
)
def test_urls_that_only_the_client_refuses(server: FakeServer, failure: Exception) -> None:
    server.failure = failure
    with pytest.raises(AdminUrlError):
        ask("http://b:1/a b", "/", timeout_s=1)


def test_urls_are_taken_apart() -> None:
    where = split_url("https://[::1]:7/proxy")
    assert (where.scheme, where.hostname, where.port, where.path) == ("https", "::1", 7, "/proxy")
    assert split_url("b:8080").scheme == "http"


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (ConnectionRefusedError(111, "refused"), "refuses the connection: is the broker running"),
        (TimeoutError("timed out"), "did not answer within 0.5 s"),
        (socket.gaierror(-2, "Name or service not known"), "reached: Name or service not known"),
        (http.client.BadStatusLine("?"), "does not speak HTTP (BadStatusLine)"),
    ],
)
def test_nobody_answers(server: FakeServer, failure: Exception, text: str) -> None:
    server.failure = failure
    with pytest.raises(UnreachableError) as caught:
        ask("http://b:1", "/", timeout_s=0.5)
    assert str(caught.value).startswith("http://b:1 ")
    assert text in str(caught.value)
