"""An OpenID Connect issuer on loopback, well-behaved or not."""

from __future__ import annotations

import base64
import datetime
import hashlib
import html
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from headgate.security.jwks import CONFIGURATION_PATH
from headgate.security.token_keys import SigningKey
from tests.unit.security.jwks_examples import jwk, key_set

KEYS_PATH = "/keys"
TOKEN_PATH = "/token"
AUTHORIZATION_PATH = "/authorize"
CODE = "the-code-of-a-reader"
DENIAL = "<img src=x onerror=alert(1)> said no"

Respond = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """One request. A path may have a function that answers in another way."""

    server: _Server

    def do_GET(self) -> None:
        issuer = self.server.issuer
        issuer.requests.append(self.path)
        issuer.headers.append(dict(self.headers))
        if (respond := issuer.responses.get(self.path)) is not None:
            respond(self)
        elif self.path == CONFIGURATION_PATH:
            self.answer(json.dumps(issuer.configuration()).encode())
        elif self.path.startswith(AUTHORIZATION_PATH):
            self.ask_reader()
        elif self.path == KEYS_PATH:
            self.answer(key_set(*(jwk(key, name) for name, key in issuer.keys.items())))
        else:
            self.answer(b"", 404)

    def ask_reader(self) -> None:
        """A page on which a reader agrees or does not (OpenID Connect Core 3.1.2)."""
        issuer = self.server.issuer
        issuer.asked = dict(parse_qsl(urlsplit(self.path).query, strict_parsing=True))
        shared = {"state": issuer.asked["state"], "iss": issuer.url}
        denied = {"error": "access_denied", "error_description": DENIAL}
        links = ""
        for name, given in (("Allow", {"code": CODE}), ("Deny", denied)):
            url = f"{issuer.asked['redirect_uri']}?{urlencode({**given, **shared})}"
            links += f'<a href="{html.escape(url)}">{name}</a> '
        page = f"<!doctype html><html lang=en><title>Issuer</title>{links}</html>"
        self.answer(page.encode(), **{"Content-Type": "text/html"})

    def do_POST(self) -> None:
        issuer = self.server.issuer
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        issuer.requests.append(self.path)
        given = dict(parse_qsl(body))
        if (respond := issuer.responses.get(self.path)) is not None:
            respond(self)
        elif self.path == TOKEN_PATH and given.get("grant_type") == "authorization_code":
            self.exchange(given)
        else:
            self.give_to_client(given)

    def exchange(self, given: dict[str, str]) -> None:
        """Tokens for a code, once, to the client for which it was made (RFC 6749, 4.1.3; RFC 7636,
        4.6)."""
        issuer = self.server.issuer
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        parts = (given.get("client_id", ""), issuer.client_secret)
        pair = base64.b64encode(":".join(map(quote_plus, parts)).encode()).decode()
        asked = issuer.asked
        if self.headers.get("Authorization") != f"Basic {pair}":
            self.answer(b'{"error": "invalid_client"}', 401)
        elif (
            given.get("code") != CODE
            or challenge != asked.get("code_challenge")
            or given.get("redirect_uri") != asked.get("redirect_uri")
            or given.get("client_id") != asked.get("client_id")
        ):
            self.answer(b'{"error": "invalid_grant"}', 400)
        else:
            issuer.asked = {}
            found = issuer.make_tokens(asked["client_id"], asked["nonce"])
            self.answer(json.dumps({**found, "token_type": "Bearer"}).encode())

    def give_to_client(self, given: dict[str, str]) -> None:
        """Give a client a token for its credentials (RFC 6749, 4.4)."""
        issuer = self.server.issuer
        is_good = given.get("client_secret") == issuer.client_secret
        if self.path != TOKEN_PATH or not is_good:
            self.answer(b'{"error": "invalid_client"}', 401)
            return
        found = {"access_token": issuer.make_token(given["client_id"]), "expires_in": 60}
        self.answer(json.dumps({**found, "token_type": "Bearer"}).encode())

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    issuer: FakeIssuer

    def handle_error(self, request: Any, client_address: Any) -> None: ...


class FakeIssuer:
    """The issuer: its keys, and what it was asked for."""

    def __init__(self, url: str, keys: dict[str, SigningKey]) -> None:
        self.url = url
        self.keys_url = url + KEYS_PATH
        self.keys = keys
        self.responses: dict[str, Respond] = {}
        self.client_secret = "a secret"
        self.make_token: Callable[[str], str] = lambda client: ""
        """What a client with the right secret gets."""
        self.make_tokens: Callable[[str, str], dict[str, str]] = lambda client, nonce: {}
        """What a client gets for the code of a reader."""
        self.asked: dict[str, str] = {}
        """What the last reader was sent here with."""
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []

    def configuration(self) -> dict[str, Any]:
        """What it publishes about itself (OpenID Connect Discovery 1.0)."""
        return {
            "issuer": self.url,
            "jwks_uri": self.keys_url,
            "token_endpoint": self.url + TOKEN_PATH,
            "authorization_endpoint": self.url + AUTHORIZATION_PATH,
            "authorization_response_iss_parameter_supported": True,
            "code_challenge_methods_supported": ["S256"],
        }


@contextmanager
def fake_issuer(
    keys: dict[str, SigningKey], certificate: tuple[Path, Path] | None = None
) -> Iterator[FakeIssuer]:
    """An issuer that serves until the end; with TLS if it has a certificate and its key."""
    server = _Server(("127.0.0.1", 0), Handler)
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        scheme = "https"
    server.issuer = FakeIssuer(f"{scheme}://127.0.0.1:{server.server_port}", keys)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def make_certificate(folder: Path, name: str, address: str = "127.0.0.1") -> tuple[Path, Path]:
    """A certificate that signs itself, and its key, for an address."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(True, False, False, False, False, True, False, False, False), True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), False)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = folder / f"{name}.pem", folder / f"{name}.key"
    certificate_path.write_bytes(built.public_bytes(Encoding.PEM))
    key_path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate_path, key_path
