"""Tokens of an issuer, each used until it nearly lapses."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import urllib3

from pyspark_pulsar import oauth2 as module
from pyspark_pulsar.errors import AccessError, TokenUnavailableError
from pyspark_pulsar.oauth2 import OAuth2, current_token, oauth2


class Issuer:
    """Answers in this process."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, str] | None]] = []
        self.discovery: tuple[int, dict[str, Any]] = (200, {"token_endpoint": "https://i/token"})
        self.answer: tuple[int, dict[str, Any]] = (200, {"access_token": "t1", "expires_in": 100})

    def exchange(
        self, url: str, form: Mapping[str, str] | None, _trust: str | None
    ) -> tuple[int, Mapping[str, Any]]:
        self.asked.append((url, form))
        return self.discovery if form is None else self.answer


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OAuth2:
    monkeypatch.setattr(module, "_held", {})
    path = tmp_path / "key.json"
    path.write_text(json.dumps({"client_id": "c", "client_secret": "s3cret"}))
    return OAuth2("https://i/realm/", str(path), audience="urn:a", scope="x")


def test_parameters() -> None:
    assert oauth2('{"issuer_url": "http://127.0.0.1:1", "private_key": "/k"}') == OAuth2(
        "http://127.0.0.1:1", "/k"
    )
    full = {
        "issuerUrl": "https://i", "privateKey": "file:///k", "audience": "a", "scope": "s",
        "trustCertsFilePath": "/ca.pem", "type": "client_credentials",
    }  # fmt: skip
    assert oauth2(json.dumps(full)) == OAuth2("https://i", "/k", "a", "s", "/ca.pem")


@pytest.mark.parametrize(
    "params",
    ["", "[]", "{}", '{"issuerUrl": 1}', '{"issuerUrl": "https://i"}',
     '{"issuerUrl": "https://i:x", "privateKey": "/k"}',
     '{"issuerUrl": "https://u:p@i", "privateKey": "/k"}',
     '{"issuerUrl": "https://i", "privateKey": "file://host/k"}'],
)  # fmt: skip
def test_parameters_that_cannot_be(params: str) -> None:
    with pytest.raises(ValueError, match="authParams of oauth2 must"):
        oauth2(params)


def test_a_token_is_kept_until_it_nearly_lapses(flow: OAuth2) -> None:
    issuer = Issuer()
    assert current_token(flow, 1_000, issuer.exchange) == "t1"
    assert issuer.asked == [
        ("https://i/realm/.well-known/openid-configuration", None),
        (
            "https://i/token",
            {"grant_type": "client_credentials", "client_id": "c", "client_secret": "s3cret",
             "audience": "urn:a", "scope": "x"},
        ),
    ]  # fmt: skip
    issuer.answer = (200, {"access_token": "t2"})
    assert current_token(flow, 1_089, issuer.exchange) == "t1"
    assert current_token(flow, 1_090, issuer.exchange) == "t2"
    assert current_token(flow, 1_143, issuer.exchange) == "t2"
    assert len(issuer.asked) == 4


@pytest.mark.parametrize("life", [None, 0, True, float("nan"), float("inf"), 10**400])
def test_a_life_that_is_none_is_short(flow: OAuth2, life: Any) -> None:
    issuer = Issuer()
    issuer.answer = (200, {"access_token": "t1", "expires_in": life})
    current_token(flow, 0, issuer.exchange)
    current_token(flow, 53, issuer.exchange)
    assert len(issuer.asked) == 2
    current_token(flow, 55, issuer.exchange)
    assert len(issuer.asked) == 4


def test_an_issuer_that_is_down_matters_when_the_token_has_lapsed(flow: OAuth2) -> None:
    issuer = Issuer()
    current_token(flow, 0, issuer.exchange)
    issuer.answer = (503, {})
    assert current_token(flow, 99, issuer.exchange) == "t1"
    with pytest.raises(TokenUnavailableError, match="status 503"):
        current_token(flow, 100, issuer.exchange)


def test_an_issuer_that_is_down_is_not_asked_for_each_request(flow: OAuth2) -> None:
    issuer = Issuer()
    issuer.answer = (200, {"access_token": "t1", "expires_in": 1_000})
    assert current_token(flow, 0, issuer.exchange) == "t1"
    issuer.discovery = (503, {})
    asked = len(issuer.asked)
    for now_s in (900, 901, 929):
        assert current_token(flow, now_s, issuer.exchange) == "t1"
    assert len(issuer.asked) == asked + 1
    issuer.discovery = (200, {"token_endpoint": "https://i/token"})
    issuer.answer = (200, {"access_token": "t2"})
    assert current_token(flow, 930, issuer.exchange) == "t2"


@pytest.mark.parametrize(
    ("discovery", "answer", "text"),
    [
        ((404, {}), (200, {}), "names no token_endpoint"),
        ((200, {"token_endpoint": "http://other/t"}), (200, {}), "names no token_endpoint"),
        (None, (401, {"error": "invalid_client"}), "status 401: invalid_client"),
        (None, (400, {"error": "no s3cret"}), "status 400: no access_token"),
        (None, (400, {"error": "x" * 95 + "s3cret"}), "status 400: no access_token"),
        (None, (200, {"access_token": "a\nb"}), "status 200: no access_token"),
        (None, (200, {"access_token": 7}), "status 200: no access_token"),
    ],
)
def test_a_refusal_is_final_and_has_no_secret(
    flow: OAuth2, discovery: Any, answer: Any, text: str
) -> None:
    issuer = Issuer()
    issuer.discovery, issuer.answer = discovery or issuer.discovery, answer
    with pytest.raises(AccessError, match=text) as caught:
        current_token(flow, 0, issuer.exchange)
    assert not isinstance(caught.value, TokenUnavailableError)
    assert "s3cr" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read: No such file"),
        ("s3cret", "is no JSON object with client_id"),
        ('{"client_id": "c"}', "is no JSON object with client_id"),
    ],
)
def test_a_key_file_that_is_none(flow: OAuth2, content: str | None, why: str) -> None:
    path = Path(flow.key_path)
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(AccessError, match=why) as caught:
        current_token(flow, 0, Issuer().exchange)
    assert "s3cret" not in str(caught.value)


class Pool:
    """Stands where the HTTP library stands."""

    asked: list[Any]
    answer: Any
    """Makes the answer, or is an exception."""

    def __init__(self, **_options: object) -> None:
        """It is one for all."""

    def request(self, *given: Any, **more: Any) -> Any:
        type(self).asked.append((*given, more.get("fields")))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer()


def answering(body: bytes) -> Any:
    return lambda *_: urllib3.HTTPResponse(io.BytesIO(body), status=200, preload_content=False)


def test_requests_to_an_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urllib3, "PoolManager", Pool)
    Pool.asked = []
    deep, long = b"[" * 100_000, b" " * module.ANSWER_BYTES_MAX + b'{"a": 1}'
    for body, found in ((b'{"a": 1}', {"a": 1}), (b"[]", {}), (b"<", {}), (deep, {}), (long, {})):
        Pool.answer = answering(body)
        assert module._exchange("https://i", None, None) == (200, found)
    module._exchange("https://i", {"b": "2"}, None)
    assert Pool.asked[4:] == [("GET", "https://i", None), ("POST", "https://i", {"b": "2"})]
    monkeypatch.setattr(module, "ISSUER_TIMEOUT_S", 1e-9)
    Pool.answer = answering(b"{}")
    with pytest.raises(TokenUnavailableError, match=r"https://i does not answer .TimeoutError"):
        module._exchange("https://i", None, None)
    Pool.answer = urllib3.exceptions.TimeoutError("s3cret")
    with pytest.raises(TokenUnavailableError, match=r"https://i does not answer .TimeoutError"):
        module._exchange("https://i", {"b": "s3cret"}, None)
    with pytest.raises(AccessError, match="trustCertsFilePath /no/such of authParams cannot be"):
        module._exchange("https://i", None, "/no/such")
