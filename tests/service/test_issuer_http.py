"""Posting a form to a real server: what is sent, what comes back, what no error repeats."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.app.issuer_http import FetchBounds, FetchError, fetch_bounds, post_form
from headgate.app.openid_fetch import fetch_endpoints
from headgate.base.errors import InputError
from headgate.policy.settings import Settings
from headgate.security.code_flow import Endpoints
from headgate.security.jwks import CONFIGURATION_PATH, DOCUMENT_BYTES_MAX
from tests.service.fake_issuer import (
    AUTHORIZATION_PATH,
    TOKEN_PATH,
    FakeIssuer,
    Handler,
    Respond,
    fake_issuer,
    make_certificate,
)
from tests.service.test_openid_fetch import drip_body, drip_headers, say_nothing
from tests.unit.security.jwks_examples import signing_key

BOUNDS = FetchBounds(5.0, 5.0, "", must_encrypt=False)
SHORT = FetchBounds(0.3, 0.3, "", must_encrypt=False)
BODY = b"grant_type=authorization_code&code=m4rked"
HEADERS = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": "Basic bTRya2Vk"}


@pytest.fixture
def issuer() -> Iterator[FakeIssuer]:
    with fake_issuer({"k1": signing_key()}) as found:
        yield found


def post(issuer: FakeIssuer, bounds: FetchBounds = BOUNDS) -> tuple[int, bytes]:
    return post_form(issuer.url + TOKEN_PATH, bounds, BODY, HEADERS)


def test_form_and_headers_arrive(issuer: FakeIssuer) -> None:
    seen = []

    def answer(handler: Handler) -> None:
        seen.append(dict(handler.headers))
        handler.answer(b'{"a": 1}', 201)

    issuer.responses[TOKEN_PATH] = answer
    assert post(issuer) == (201, b'{"a": 1}')
    (headers,) = seen
    assert HEADERS.items() <= headers.items()
    assert headers["Content-Length"] == str(len(BODY))
    assert headers["Accept"] == "application/json"


@pytest.mark.parametrize("status", [302, 307, 400, 500])
def test_another_status_is_an_answer_and_no_redirect_is_followed(
    issuer: FakeIssuer, status: int
) -> None:
    """Code and secret would go to another host."""
    with fake_issuer({}) as other:
        issuer.responses[TOKEN_PATH] = lambda handler: handler.answer(
            b"{}", status, Location=other.url + TOKEN_PATH
        )
        assert post(issuer) == (status, b"{}")
        assert other.requests == []


@pytest.mark.parametrize(
    "respond",
    [
        lambda handler: handler.wfile.write(b"m4rked HTTP\r\n\r\n"),
        lambda handler: handler.wfile.write(b"HTTP/1.1 m4rked\r\n\r\n"),
        lambda handler: handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: m4rked\r\nTransfer-Encoding: chunked\r\n\r\nm4rked"
        ),
        lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"m4rked: x\r\n" * 500),
        lambda handler: None,
    ],
)
def test_an_error_does_not_repeat_what_was_sent(issuer: FakeIssuer, respond: Respond) -> None:
    issuer.responses[TOKEN_PATH] = respond
    with pytest.raises(FetchError) as refusal:
        post(issuer)
    assert str(refusal.value).startswith(issuer.url)
    assert "m4rked" not in str(refusal.value)


@pytest.mark.parametrize("respond", [say_nothing, drip_headers, drip_body])
def test_an_answer_that_does_not_end(issuer: FakeIssuer, respond: Respond) -> None:
    issuer.responses[TOKEN_PATH] = respond
    began_s = time.monotonic()
    with pytest.raises(FetchError, match="did not answer in time"):
        post(issuer, SHORT)
    assert time.monotonic() - began_s < 1.5


def test_a_huge_answer(issuer: FakeIssuer) -> None:
    issuer.responses[TOKEN_PATH] = lambda handler: handler.answer(b" " * (2 * DOCUMENT_BYTES_MAX))
    with pytest.raises(FetchError, match=f"more than {DOCUMENT_BYTES_MAX:,} bytes"):
        post(issuer)


def test_nothing_is_sent_to_a_host_with_another_certificate(tmp_path: Path) -> None:
    certificate, _ = pair = make_certificate(tmp_path, "a")
    other, _ = make_certificate(tmp_path, "b")
    with fake_issuer({}, pair) as issuer:
        issuer.responses[TOKEN_PATH] = lambda handler: handler.answer(b"{}")
        assert post(issuer, FetchBounds(5, 5, str(certificate), must_encrypt=True)) == (200, b"{}")
        with pytest.raises(FetchError, match="certificate is not accepted"):
            post(issuer, FetchBounds(5, 5, str(other), must_encrypt=True))
        with pytest.raises(InputError, match="openIDTokenIssuerTrustCertsFilePath"):
            post(issuer, FetchBounds(5, 5, str(tmp_path / "absent"), must_encrypt=True))
        assert issuer.requests == [TOKEN_PATH]


def test_the_endpoints_of_an_issuer(issuer: FakeIssuer) -> None:
    assert fetch_endpoints(issuer.url, BOUNDS) == Endpoints(
        issuer.url + AUTHORIZATION_PATH, issuer.url + TOKEN_PATH, True, True
    )
    assert issuer.requests == [CONFIGURATION_PATH]
    issuer.responses[CONFIGURATION_PATH] = lambda handler: handler.answer(b"{}")
    with pytest.raises(FetchError, match=f"{CONFIGURATION_PATH}: the configuration is for the iss"):
        fetch_endpoints(issuer.url, BOUNDS)
    no_file = FetchBounds(5, 5, "/no/such", must_encrypt=False)
    with pytest.raises(FetchError, match="openIDTokenIssuerTrustCertsFilePath"):
        fetch_endpoints(issuer.url, no_file)


def test_the_bounds_are_those_of_the_settings() -> None:
    settings = Settings(openIDHttpConnectionTimeoutMillis=1_500, openIDHttpReadTimeoutMillis=2_500)
    found = fetch_bounds(settings)
    assert found == FetchBounds(1.5, 2.5, "", must_encrypt=True)
    assert found.total_s == 8.0
