"""Fetching keys from a real HTTP server: bounds of time and size, TLS, and the provider over it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.app.issuer_http import FetchBounds, FetchError
from headgate.app.openid_fetch import fetch_keys
from headgate.app.openid_provider import open_id_provider
from headgate.base.clock import SystemClock
from headgate.policy.settings import Settings
from headgate.security.errors import CredentialsError
from headgate.security.jwks import CONFIGURATION_PATH, DOCUMENT_BYTES_MAX
from headgate.security.provider import Credentials, Principal
from tests.service.fake_issuer import (
    KEYS_PATH,
    FakeIssuer,
    Handler,
    Respond,
    fake_issuer,
    make_certificate,
)
from tests.unit.security.jwks_examples import AUDIENCE, signing_key, token

BOUNDS = FetchBounds(5.0, 5.0, "", must_encrypt=False)
SHORT = FetchBounds(0.3, 0.3, "", must_encrypt=False)
BOTH_PATHS = pytest.mark.parametrize("path", [CONFIGURATION_PATH, KEYS_PATH])


@pytest.fixture
def issuer() -> Iterator[FakeIssuer]:
    with fake_issuer({"k1": signing_key(), "k2": signing_key("ES256")}) as found:
        yield found


def refused(issuer: FakeIssuer, why: str, bounds: FetchBounds = BOUNDS) -> None:
    with pytest.raises(FetchError, match=why):
        fetch_keys(issuer.url, bounds)


def test_the_keys_of_an_issuer(issuer: FakeIssuer) -> None:
    keys = fetch_keys(issuer.url, BOUNDS)
    assert {name: [key.algorithms for key in found] for name, found in keys.items()} == {
        "k1": [("RS256",)],
        "k2": [("ES256",)],
    }
    assert issuer.requests == [CONFIGURATION_PATH, KEYS_PATH]
    assert not {"Authorization", "Cookie"} & issuer.headers[0].keys()


@BOTH_PATHS
@pytest.mark.parametrize("status", [301, 302, 307, 404, 500, 204])
def test_another_status(issuer: FakeIssuer, path: str, status: int) -> None:
    """A redirect is not followed: it could lead to a host that the operator does not know."""
    issuer.responses[path] = lambda handler: handler.answer(
        b"", status, Location=f"{issuer.url}/elsewhere"
    )
    why = ": redirects are not followed" if 300 <= status < 400 else ""
    refused(issuer, f"{path} answers with status {status}{why}$")
    assert "/elsewhere" not in issuer.requests


@BOTH_PATHS
def test_a_huge_document(issuer: FakeIssuer, path: str) -> None:
    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" " * 65_536)

    issuer.responses[path] = endless
    refused(issuer, f"more than {DOCUMENT_BYTES_MAX:,} bytes")


def drip_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(200):
        handler.wfile.write(b"X-%d: y\r\n" % number)
        time.sleep(0.05)


def drip_body(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(200):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def say_nothing(handler: Handler) -> None:
    time.sleep(2)


@BOTH_PATHS
@pytest.mark.parametrize("respond", [say_nothing, drip_headers, drip_body])
def test_an_answer_that_does_not_end(issuer: FakeIssuer, path: str, respond: Respond) -> None:
    issuer.responses[path] = respond
    began_s = time.monotonic()
    refused(issuer, f"{path} did not answer in time", SHORT)
    assert time.monotonic() - began_s < 1.5


def cut(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{")


@BOTH_PATHS
@pytest.mark.parametrize(
    ("respond", "why"),
    [
        (cut, "ended its answer 999 bytes before the end"),
        (lambda handler: handler.wfile.write(b"SSH-2.0\r\n"), "SSH-2.0"),
        (lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500), "100"),
        (lambda handler: None, "Remote end closed connection"),
        (lambda handler: handler.answer(b"<html>"), "is no JSON"),
        (lambda handler: handler.answer(b"\x1f\x8b", **{"Content-Encoding": "gzip"}), "is no JSON"),
    ],
)
def test_no_document(issuer: FakeIssuer, path: str, respond: Respond, why: str) -> None:
    issuer.responses[path] = respond
    refused(issuer, why)


def test_another_issuer_s_configuration(issuer: FakeIssuer) -> None:
    with fake_issuer({}) as other:
        issuer.responses[CONFIGURATION_PATH] = lambda handler: handler.answer(
            f'{{"issuer": "{other.url}", "jwks_uri": "{other.keys_url}"}}'.encode()
        )
        refused(issuer, "is for the issuer")
        assert not other.requests


def test_keys_on_another_host(issuer: FakeIssuer) -> None:
    """Large issuers have them there. The configuration comes from the issuer itself."""
    with fake_issuer({"k9": signing_key()}) as other:
        issuer.keys_url = other.keys_url
        assert list(fetch_keys(issuer.url, BOUNDS)) == ["k9"]


def test_nobody_listens(issuer: FakeIssuer) -> None:
    issuer.keys_url = "http://127.0.0.1:1/keys"
    refused(issuer, "http://127.0.0.1:1/keys: Connection refused")


# TLS ----------------------------------------------------------------------------------------------


def trusting(path: Path) -> FetchBounds:
    return FetchBounds(5.0, 5.0, str(path), must_encrypt=True)


def test_an_issuer_with_tls(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path, "a")
    with fake_issuer({"k1": signing_key()}, certificate) as issuer:
        assert list(fetch_keys(issuer.url, trusting(certificate[0]))) == ["k1"]
        other, _ = make_certificate(tmp_path, "b")
        refused(issuer, "its certificate is not accepted: self", trusting(other))
        refused(issuer, "its certificate is not accepted", BOUNDS)
        issuer.keys_url = issuer.keys_url.replace("https", "http")
        refused(issuer, "is not encrypted", trusting(certificate[0]))
        # The authorities are read for each fetch.
        certificate[0].unlink()
        refused(issuer, r"openIDTokenIssuerTrustCertsFilePath=.* No such", trusting(certificate[0]))


def test_a_certificate_for_another_host(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path, "a", "127.0.0.2")
    with fake_issuer({"k1": signing_key()}, certificate) as issuer:
        refused(issuer, "IP address mismatch", trusting(certificate[0]))


def test_a_handshake_that_does_not_end(issuer: FakeIssuer) -> None:
    """The port speaks no TLS and waits."""
    bounds = FetchBounds(0.3, 0.3, "", must_encrypt=True)
    with pytest.raises(FetchError, match=r"did not answer in time|SSL|record"):
        fetch_keys(issuer.url.replace("http:", "https:"), bounds)


# The provider over it -----------------------------------------------------------------------------


async def played(issuer: FakeIssuer) -> None:
    settings = Settings(
        openIDAllowedTokenIssuers=issuer.url,
        openIDAllowedAudiences=AUDIENCE,
        openIDRequireIssuersUseHttps=False,
        openIDKeyIdCacheMissRefreshSeconds=0,
    )
    provider = open_id_provider(settings, SystemClock())
    now_s = time.time()

    def valid(key_id: str, **changed: Any) -> bytes:
        said = {"iss": issuer.url, "iat": now_s, "exp": now_s + 60, **changed}
        return token(issuer.keys[key_id], key_id, **said).encode()

    async def ask(text: bytes) -> Principal:
        found = provider.principal(Credentials("token", text), now_s)
        return found if isinstance(found, Principal) else await found

    try:
        together = await asyncio.gather(*(ask(valid("k1")) for _ in range(200)))
        assert {found.role for found in together} == {"app"}
        assert issuer.requests == [CONFIGURATION_PATH, KEYS_PATH]
        issuer.keys["k3"] = signing_key("ES384")
        assert (await ask(valid("k3", sub="new"))).role == "new"
        assert len(issuer.requests) == 4
        with pytest.raises(CredentialsError, match="expired"):
            await ask(valid("k1", exp=now_s))
        with pytest.raises(CredentialsError, match="openIDAllowedTokenIssuers"):
            await ask(valid("k1", iss=f"{issuer.url}/x"))
        assert len(issuer.requests) == 4
    finally:
        provider.close()


def test_the_provider_with_threads_and_sockets(issuer: FakeIssuer) -> None:
    asyncio.run(asyncio.wait_for(played(issuer), 20))
