"""One request to an admin API, and one sentence when the API does not answer."""

from __future__ import annotations

import http.client
import socket

import pytest

from headgate.access import admin_api
from headgate.access.admin_api import (
    AccessRefusedError,
    AdminApi,
    AdminUrlError,
    UnreachableError,
    reason_in,
    split_url,
)
from headgate.access.client_config import ClientConfig
from tests.unit.cli.admin.fake_server import FakeServer, Reply


def api(url: str, **more: str) -> AdminApi:
    return AdminApi(ClientConfig(url, **more), {}, print)  # type: ignore[arg-type]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    fake = FakeServer()
    fake.install(monkeypatch)
    return fake


def test_a_get_has_no_body_and_a_post_says_what_its_body_is(server: FakeServer) -> None:
    server.replies = [Reply(404, b"text")]
    reply, body = api("http://b:1/proxy/").ask("/path?a=b", timeout_s=2.5)
    assert (reply.status, body, server.timeout_s) == (404, b"text", 2.5)
    assert server.asked == [("GET", "/proxy/path?a=b", "")]
    api("b:1").ask("/path", timeout_s=1, method="POST", body=b"{}")
    assert server.asked[-1] == ("POST", "/path", "{}")
    assert server.headers == {"Content-Type": "application/json"}
    api("b:1").ask("/path", timeout_s=1, method="DELETE")
    assert (server.asked[-1], server.headers) == (("DELETE", "/path", ""), {})


@pytest.mark.parametrize(
    "url",
    [
        "pulsar://b:6650",
        "http://",
        "http://b:99999",
        "http://b:0",
        "http://[::1",
        "",
        "http://a b",
        "http://b:1/x\n",
        "http://b\x7f",
    ],
)
def test_urls_that_cannot_be(server: FakeServer, url: str) -> None:
    with pytest.raises(AdminUrlError) as caught:
        api(url).ask("/", timeout_s=1)
    assert str(caught.value) == f"--admin-url is {url!r}; use http://HOST:PORT of the admin API"
    assert server.asked == []


@pytest.mark.parametrize(
    "url", ["http://u:m4rked@b:1", "u:m4rked@b:1/x", "ftp://m4rked@b", "https://b@m4rked:1?a"]
)
def test_a_url_with_a_user_is_not_repeated(server: FakeServer, url: str) -> None:
    with pytest.raises(AdminUrlError, match="--admin-url is a URL with a user") as caught:
        api(url).ask("/", timeout_s=1)
    assert "m4rked" not in str(caught.value)
    assert server.asked == []


@pytest.mark.parametrize(
    "failure", [UnicodeError("label too long"), http.client.InvalidURL("a space")]
)
def test_urls_that_only_the_client_refuses(server: FakeServer, failure: Exception) -> None:
    server.failure = failure
    with pytest.raises(AdminUrlError):
        api("http://b:1/a b").ask("/", timeout_s=1)


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
        api("http://b:1").ask("/", timeout_s=0.5)
    assert str(caught.value).startswith("http://b:1 ")
    assert text in str(caught.value)


def test_a_url_of_a_file_is_named_by_its_key(server: FakeServer) -> None:
    with pytest.raises(
        AdminUrlError, match=r"^webServiceUrl in c.conf is 'http://a,b:x'; use http:"
    ):
        api("http://a,b:x", url_origin="webServiceUrl in c.conf").ask("/", timeout_s=1)


def test_a_request_carries_the_credentials(server: FakeServer) -> None:
    token = api("http://b:1", auth_plugin="token", auth_params="token:s3cret")
    token.ask("/", timeout_s=1)
    assert server.headers == {"Authorization": "Bearer s3cret"}
    token.ask("/", timeout_s=1, method="PUT")
    assert server.headers == {
        "Authorization": "Bearer s3cret", "Content-Type": "application/json"
    }  # fmt: skip


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_says_what_was_sent_and_no_secret(server: FakeServer, status: int) -> None:
    server.replies = [Reply(status, b'{"reason": "bad token s3cret"}')]
    sent = api(
        "http://b:1", auth_plugin="token", auth_params="token:s3cret", auth_origin="--auth-params"
    )
    with pytest.raises(AccessRefusedError) as caught:
        sent.ask("/", timeout_s=1)
    assert caught.value.reason == "bad token ***"
    assert f"http://b:1 refuses the request (status {status}): bad token ***" in str(caught.value)
    assert "The command sent the token (--auth-params)" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_without_a_reason_the_status_stands_for_it(server: FakeServer) -> None:
    server.replies = [Reply(401, b"<html>", reason="Unauthorized")]
    with pytest.raises(AccessRefusedError, match=r"Unauthorized\. The command sent no credentials"):
        api("http://b:1").ask("/", timeout_s=1)


def test_reasons_in_answers() -> None:
    assert reason_in(b'{"reason": "no"}') == "no"
    assert reason_in(b"[]") == reason_in(b"{}") == reason_in(b"<") == ""
    assert reason_in(b'{"reason": ' + b"[" * 60_000) == ""
    assert reason_in(b'{"reason": "' + b"x" * 70_000 + b'"}') == ""


def test_a_reason_can_be_sent_on() -> None:
    """Half of a surrogate pair is JSON, but no UTF-8: an agent could answer nobody any more."""
    assert reason_in(rb'{"reason": "a\ud800 b"}').encode() == b"a? b"


def test_an_answer_without_end_is_given_up(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_api, "BODY_BYTES_MAX", 1_000)
    server.replies = [Reply(200, bytes(1_000))]
    assert len(api("http://b:1").ask("/", timeout_s=1)[1]) == 1_000
    server.replies = [Reply(200, bytes(1_001))]
    with pytest.raises(UnreachableError, match=r"http://b:1 answers with more than 1,000 B"):
        api("http://b:1").ask("/", timeout_s=1)


def test_an_answer_that_ends_early_is_none(server: FakeServer) -> None:
    server.replies = [Reply(200, b"{}", length=9)]
    with pytest.raises(UnreachableError, match=r"does not speak HTTP \(IncompleteRead"):
        api("http://b:1").ask("/", timeout_s=1)
