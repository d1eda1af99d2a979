"""The messages of the code flow: what is sent, and which answers are refused."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from headgate.base.errors import InputError
from headgate.security.code_flow import (
    CODE_CHARACTERS_MAX,
    QUERY_BYTES_MAX,
    TOKEN_CHARACTERS_MAX,
    Client,
    Endpoints,
    SignInError,
    Tokens,
    authorization_url,
    check_id_claims,
    code_of,
    endpoints_of,
    parameters_of,
    token_request,
    tokens_of,
)
from headgate.security.errors import CredentialsError

ISSUER = "https://issuer.example/realm"
REDIRECT = "https://broker.example/p/headgate/sign-in/callback"
CLIENT = Client(ISSUER, "page", REDIRECT, "openid email")
ENDPOINTS = Endpoints(f"{ISSUER}/auth", "https://tokens.example/token", False, True)
NAMING = Endpoints(ENDPOINTS.authorization_url, ENDPOINTS.token_url, True, True)


def configuration(**changed: Any) -> bytes:
    found = {
        "issuer": ISSUER, "authorization_endpoint": f"{ISSUER}/auth",
        "token_endpoint": "https://tokens.example/token", **changed,
    }  # fmt: skip
    return json.dumps({name: value for name, value in found.items() if value is not None}).encode()


def test_the_endpoints_of_a_configuration() -> None:
    assert endpoints_of(configuration(), ISSUER, must_encrypt=True) == ENDPOINTS
    document = configuration(
        authorization_response_iss_parameter_supported=True,
        token_endpoint_auth_methods_supported=["private_key_jwt", "client_secret_post"],
        code_challenge_methods_supported=["plain", "S256"],
    )
    found = endpoints_of(document, ISSUER, must_encrypt=True)
    assert found.names_itself
    assert not found.takes_secret_in_header


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"issuer": "https://other.example"}, "is for the issuer 'https://other.example'"),
        ({"authorization_endpoint": None}, "has no authorization_endpoint"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "is no URL"),
        ({"authorization_endpoint": "https://a.example/\r\nSet-Cookie: x"}, "is no URL"),
        ({"authorization_endpoint": "http://issuer.example/auth"}, "is not encrypted"),
        ({"token_endpoint": "http://tokens.example/token"}, "is not encrypted"),
        ({"token_endpoint": ["https://x"]}, "has no token_endpoint"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE with S256"),
    ],
)
def test_a_configuration_that_cannot_be_used(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        endpoints_of(configuration(**changed), ISSUER, must_encrypt=False)


def test_where_the_browser_goes() -> None:
    url = authorization_url(CLIENT, ENDPOINTS, state="s", nonce="n", verifier="v" * 43)
    assert url.startswith(f"{ISSUER}/auth?")
    digest = hashlib.sha256(b"v" * 43).digest()
    assert parse_qs(urlsplit(url).query) == {
        "response_type": ["code"], "client_id": ["page"], "redirect_uri": [REDIRECT],
        "scope": ["openid email"], "state": ["s"], "nonce": ["n"],
        "code_challenge": [base64.urlsafe_b64encode(digest).decode().rstrip("=")],
        "code_challenge_method": ["S256"],
    }  # fmt: skip
    asking = Client(ISSUER, "page", REDIRECT, audience="broker")
    with_query = Endpoints(f"{ISSUER}/auth?tenant=a", "https://t.example", False, True)
    found = parse_qs(
        urlsplit(authorization_url(asking, with_query, state="", nonce="", verifier="")).query
    )
    assert found["tenant"] == ["a"]
    assert found["audience"] == ["broker"]


def test_the_challenge_is_that_of_rfc_7636() -> None:
    """Appendix B."""
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    url = authorization_url(CLIENT, ENDPOINTS, state="s", nonce="n", verifier=verifier)
    assert "code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&" in url


@pytest.mark.parametrize(
    "query",
    [
        b"state=a&state=b",
        b"code=a&iss=x&iss=y",
        b"state=%ff",
        "state=ä".encode(),
        b"&".join(b"p%d=" % number for number in range(40)),
        b"state=" + b"a" * QUERY_BYTES_MAX,
    ],
)
def test_parameters_that_cannot_be_read(query: bytes) -> None:
    with pytest.raises(SignInError, match="cannot be read"):
        parameters_of(query)


def test_the_code_of_an_answer() -> None:
    given = {"state": "s", "code": "c+/d", "session_state": "x"}
    parameters = parameters_of(urlencode(given).encode())
    assert parameters == given
    assert code_of(parameters, CLIENT, ENDPOINTS) == "c+/d"
    assert code_of({**given, "iss": ISSUER}, CLIENT, NAMING) == "c+/d"


@pytest.mark.parametrize(
    ("given", "endpoints", "why"),
    [
        # A mix-up: another issuer sends its code here, to learn what is sent with it.
        ({"code": "c", "iss": "https://other.example"}, ENDPOINTS, "Another identity provider"),
        ({"code": "c", "iss": ISSUER + "/"}, ENDPOINTS, "Another identity provider"),
        ({"code": "c"}, NAMING, "does not say that it is of"),
        ({"error": "access_denied", "iss": "https://x"}, ENDPOINTS, "Another identity provider"),
        ({"error": "access_denied"}, ENDPOINTS, f"{ISSUER} refuses: access_denied$"),
        ({}, ENDPOINTS, "has no code"),
        ({"code": ""}, ENDPOINTS, "has no code"),
        ({"code": "c" * (CODE_CHARACTERS_MAX + 1)}, ENDPOINTS, "has no code"),
    ],
)
def test_an_answer_without_a_code(given: dict[str, str], endpoints: Endpoints, why: str) -> None:
    with pytest.raises(SignInError, match=why):
        code_of(given, CLIENT, endpoints)


def test_the_error_of_an_issuer_is_one_short_line() -> None:
    text = "no\r\nlog line\x1b[31m" + "x" * 1_000
    with pytest.raises(SignInError) as refusal:
        code_of({"error": "e", "error_description": text}, CLIENT, ENDPOINTS)
    shown = str(refusal.value)
    assert "refuses: e: no  log line [31mx" in shown
    assert shown.isprintable()
    assert len(shown) < 400


def test_the_request_that_exchanges_a_code() -> None:
    body, headers = token_request(CLIENT, ENDPOINTS, code="c&d", verifier="v", secret="")
    assert parse_qs(body.decode()) == {
        "grant_type": ["authorization_code"], "code": ["c&d"], "redirect_uri": [REDIRECT],
        "client_id": ["page"], "code_verifier": ["v"],
    }  # fmt: skip
    assert headers == {"Content-Type": "application/x-www-form-urlencoded"}


def test_the_secret_goes_into_the_header_or_the_body() -> None:
    body, headers = token_request(CLIENT, ENDPOINTS, code="c", verifier="v", secret="a:b c%")
    assert "client_secret" not in body.decode()
    assert base64.b64decode(headers["Authorization"].split()[1]) == b"page:a%3Ab+c%25"
    in_body = Endpoints("https://a.example", "https://t.example", False, False)
    body, headers = token_request(CLIENT, in_body, code="c", verifier="v", secret="a:b")
    assert parse_qs(body.decode())["client_secret"] == ["a:b"]
    assert "Authorization" not in headers


def answer(**changed: Any) -> bytes:
    found = {"access_token": "a", "id_token": "i", "token_type": "Bearer", **changed}
    return json.dumps({name: value for name, value in found.items() if value is not None}).encode()


def test_the_tokens_of_an_answer() -> None:
    assert tokens_of(200, answer(refresh_token="r")) == Tokens("a", "i")
    assert tokens_of(200, answer(token_type="bearer")) == Tokens("a", "i")
    assert "a" not in repr(Tokens("a", "i")).replace("Tokens", "")


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"<html>", "is no JSON"),
        (b"[]", "is no JSON object"),
        (b"[" * 100_000, "is no JSON"),
        (answer(token_type="DPoP"), "another type than Bearer"),
        (answer(token_type=None), "another type than Bearer"),
        (answer(id_token=None), "gives no id_token"),
        (answer(access_token={"x": 1}), "gives no access_token"),
        (answer(access_token="a" * (TOKEN_CHARACTERS_MAX + 1)), "gives no access_token"),
    ],
)
def test_an_answer_without_tokens(document: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        tokens_of(200, document)


@pytest.mark.parametrize(
    ("status", "error", "shown"),
    [
        (400, "invalid_grant", "invalid_grant"),
        (401, "invalid_client", "invalid_client"),
        # It could repeat the secret or the code that it was sent.
        (400, "the secret is s3cret", "status 400"),
        (500, ["invalid_grant"], "status 500"),
        (302, None, "status 302"),
    ],
)
def test_a_refusal_of_the_token_endpoint(status: int, error: Any, shown: str) -> None:
    document = json.dumps({"error": error, "error_description": "s3cret"}).encode()
    with pytest.raises(SignInError) as refusal:
        tokens_of(status, document)
    assert str(refusal.value) == f"The identity provider does not exchange the code: {shown}"


def test_an_id_token_is_of_this_sign_in_and_this_client() -> None:
    check_id_claims({"nonce": "n"}, "page", "n")
    check_id_claims({"nonce": "n", "azp": "page"}, "page", "n")
    for claims in ({}, {"nonce": "m"}, {"nonce": 1}, {"nonce": "nä"}, {"nonce": "\ud800"}):
        with pytest.raises(CredentialsError, match="nonce differs"):
            check_id_claims(claims, "page", "n")
    with pytest.raises(CredentialsError, match="another client"):
        check_id_claims({"nonce": "n", "azp": "other"}, "page", "n")
