"""A token of the issuer is used until it nearly lapses, and no error has the client's secret."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import parse_qs

import pytest

from headgate.access import oauth2
from headgate.access.oauth2 import (
    ClientCredentialsFlow,
    FlowOptions,
    JsonReply,
    TokenUnavailableError,
    http_json,
)
from headgate.base.errors import InputError

ISSUER = "https://issuer/realm"
ENDPOINT = "https://issuer/token"
KEY = json.dumps({"type": "client_credentials", "client_id": "c", "client_secret": "s3cret"})


class Issuer:
    """Answers in this process, at a time of its own."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.asked: list[tuple[str, str]] = []
        self.discovery = JsonReply(200, {"token_endpoint": ENDPOINT})
        self.reply = JsonReply(200, {"access_token": "t1", "expires_in": 100})
        self.is_down = False

    def exchange(self, url: str, form: str, _trust_path: str) -> JsonReply:
        if self.is_down:
            raise TokenUnavailableError("down")
        self.asked.append((url, form))
        return self.reply if form else self.discovery

    def flow(self, **options: str) -> ClientCredentialsFlow:
        return ClientCredentialsFlow(
            FlowOptions(ISSUER, **options), lambda: KEY, self.exchange, lambda: self.now_s
        )


def test_the_form_has_the_clients_credentials() -> None:
    issuer = Issuer()
    assert issuer.flow(audience="urn:a", scope="x y").token() == "t1"
    (discovery, nothing), (endpoint, form) = issuer.asked
    assert (discovery, nothing) == (f"{ISSUER}/.well-known/openid-configuration", "")
    assert endpoint == ENDPOINT
    assert parse_qs(form) == {
        "grant_type": ["client_credentials"], "client_id": ["c"], "client_secret": ["s3cret"],
        "audience": ["urn:a"], "scope": ["x y"],
    }  # fmt: skip
    issuer.asked.clear()
    issuer.flow().token()
    assert "audience" not in issuer.asked[-1][1]


def test_a_token_is_used_until_it_nearly_lapses() -> None:
    issuer = Issuer()
    flow = issuer.flow()
    assert (flow.token(), flow.secrets()) == ("t1", ["t1"])
    issuer.reply = JsonReply(200, {"access_token": "t2", "expires_in": 100})
    issuer.now_s += 89.9
    assert flow.token() == "t1"
    issuer.now_s += 0.1
    assert flow.token() == "t2"


def test_an_issuer_that_is_down_matters_when_the_token_has_lapsed() -> None:
    issuer = Issuer()
    flow = issuer.flow()
    flow.token()
    issuer.is_down = True
    issuer.now_s += 99
    assert flow.token() == "t1"
    issuer.now_s += 1
    with pytest.raises(TokenUnavailableError):
        flow.token()
    issuer.is_down = False
    assert flow.token() == "t1"


def test_an_issuer_that_fails_is_not_asked_for_each_request_while_the_token_is_valid() -> None:
    issuer = Issuer()
    issuer.reply = JsonReply(200, {"access_token": "t1", "expires_in": 1_000})
    flow = issuer.flow()
    flow.token()
    issuer.discovery = JsonReply(503, {})
    issuer.now_s += 910
    issuer.asked.clear()
    for _ in range(100):
        assert flow.token() == "t1"
        issuer.now_s += 0.25
    assert len(issuer.asked) == 1
    issuer.discovery = JsonReply(200, {"token_endpoint": ENDPOINT})
    issuer.reply = JsonReply(200, {"access_token": "t2", "expires_in": 1_000})
    issuer.now_s += 5
    assert flow.token() == "t2"


@pytest.mark.parametrize("life", [None, "100", 0, -1, True, float("nan"), float("inf"), 10**400])
def test_a_life_that_is_none_is_short(life: Any) -> None:
    issuer = Issuer()
    issuer.reply = JsonReply(200, {"access_token": "t1", "expires_in": life})
    flow = issuer.flow()
    flow.token()
    count = len(issuer.asked)
    issuer.now_s += 53
    flow.token()
    assert len(issuer.asked) == count
    issuer.now_s += 2
    flow.token()
    assert len(issuer.asked) > count


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (JsonReply(401, {"error": "invalid_client"}), r"gives no token \(status 401: invalid_cl"),
        (JsonReply(400, {"error": "no s3cret"}), r"\(status 400: no access_token\)"),
        (JsonReply(400, {"error": f"{'x' * 95} s3cret"}), r"\(status 400: no access_token\)"),
        (JsonReply(400, {"error": "no \ud800\x1b"}), "status 400: no \ufffd\ufffd"),
        (JsonReply(200, {}), r"\(status 200: no access_token\)"),
        (JsonReply(200, {"access_token": "a\r\nb"}), r"\(status 200: no access_token\)"),
        (JsonReply(200, {"access_token": 1}), r"\(status 200: no access_token\)"),
    ],
)
def test_a_refusal_of_the_issuer(reply: JsonReply, text: str) -> None:
    issuer = Issuer()
    issuer.reply = reply
    with pytest.raises(TokenUnavailableError, match=text) as caught:
        issuer.flow().token()
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize(
    ("discovery", "text"),
    [
        (JsonReply(404, {}), "names no token_endpoint .status 404.: is issuerUrl right"),
        (JsonReply(200, {"token_endpoint": None}), "names no token_endpoint"),
        (JsonReply(200, {"token_endpoint": "http://other/t"}), "'http://other/t' is no https URL"),
    ],
)
def test_an_issuer_that_names_no_endpoint(discovery: JsonReply, text: str) -> None:
    issuer = Issuer()
    issuer.discovery = discovery
    with pytest.raises(TokenUnavailableError, match=text):
        issuer.flow().token()
    assert len(issuer.asked) == 1, "the secret was not sent"


@pytest.mark.parametrize("url", ["http://h", "ftp://h", "https://", "https://u:p@h", "https://h:x"])
def test_an_issuer_gets_no_secret_in_the_open(url: str) -> None:
    with pytest.raises(InputError, match=r"issuerUrl .* is no https URL"):
        ClientCredentialsFlow(FlowOptions(url), lambda: KEY, Issuer().exchange)


def test_a_password_in_the_url_of_an_issuer_is_not_repeated() -> None:
    with pytest.raises(InputError, match="issuerUrl names a user") as caught:
        ClientCredentialsFlow(FlowOptions("https://u:s3cret@h"), lambda: KEY, Issuer().exchange)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "s3cret", "[]", '{"client_id": "c"}', '{"client_id": 1}'])
def test_a_key_that_is_none(key: str) -> None:
    issuer = Issuer()
    flow = ClientCredentialsFlow(FlowOptions(ISSUER), lambda: key, issuer.exchange)
    with pytest.raises(InputError, match="privateKey is no JSON object") as caught:
        flow.token()
    assert "s3cret" not in str(caught.value)


class Connection:
    """Stands where the standard library's client stands."""

    made: ClassVar[list[tuple[Any, ...]]] = []
    body = b"{}"
    sock: Any = None
    failure: Exception | None = None
    status = 200

    def __init__(self, host: str, port: int | None, timeout: float) -> None:
        self.made.append((host, port, timeout))

    def request(self, method: str, target: str, body: bytes = b"", headers: Any = None) -> None:
        self.made.append((method, target, body, dict(headers).get("Content-Type")))
        if self.failure is not None:
            raise self.failure

    def connect(self) -> None: ...

    def getresponse(self) -> Connection:
        return self

    def read(self, _count: int) -> bytes:
        return self.body

    def close(self) -> None:
        self.made.append(())


def test_requests_to_an_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http.client, "HTTPConnection", Connection)
    monkeypatch.setattr(Connection, "made", [])
    monkeypatch.setattr(Connection, "body", b'{"a": 1}')
    assert http_json("http://127.0.0.1:7/a?b", "", "") == JsonReply(200, {"a": 1})
    assert http_json("http://localhost", "x=1", "") == JsonReply(200, {"a": 1})
    form = "application/x-www-form-urlencoded"
    assert Connection.made == [
        ("127.0.0.1", 7, 10.0), ("GET", "/a?b", b"", None), (),
        ("localhost", None, 10.0), ("POST", "", b"x=1", form), (),
    ]  # fmt: skip
    for body in (b"<html>", b"[]"):
        monkeypatch.setattr(Connection, "body", body)
        assert http_json("http://localhost/", "", "") == JsonReply(200, {})


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (http.client.BadStatusLine("s3cret"), "BadStatusLine"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), "no TLS connection"),
        (UnicodeError("label empty or too long"), "UnicodeError"),
    ],
)
def test_an_issuer_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, why: str
) -> None:
    monkeypatch.setattr(http.client, "HTTPConnection", Connection)
    monkeypatch.setattr(Connection, "failure", failure)
    with pytest.raises(TokenUnavailableError, match=f"localhost/x does not answer: {why}") as told:
        http_json("http://localhost/x", "a=s3cret", "")
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("host", ["[::1%25x]", f"{'a' * 70}.example"])
def test_a_host_that_is_none_is_told(host: str) -> None:
    with pytest.raises(TokenUnavailableError, match="does not answer"):
        http_json(f"http://{host}/x", "a=s3cret", "")


@pytest.mark.parametrize(
    "part", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["head", "body"]
)
def test_an_answer_that_drips_is_given_up_in_time(
    monkeypatch: pytest.MonkeyPatch, part: bytes
) -> None:
    monkeypatch.setattr(oauth2, "ISSUER_TIMEOUT_S", 0.3)
    ended = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        peer, _ = server.accept()
        with peer, suppress(OSError):
            while not ended.wait(0.02):
                peer.sendall(part)

    thread = threading.Thread(target=drip)
    thread.start()
    begin_s = time.monotonic()
    try:
        with suppress(TokenUnavailableError):
            assert http_json(f"http://127.0.0.1:{server.getsockname()[1]}/", "", "").document == {}
        assert time.monotonic() - begin_s < 10
    finally:
        ended.set()
        thread.join()
        server.close()
