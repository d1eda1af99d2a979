"""A broker that only offers TLS and asks for a token, a password or a certificate."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import bcrypt

from tests.service.fake_issuer import FakeIssuer, fake_issuer
from tests.service.process import BrokerProcess
from tests.unit.security.jwks_examples import AUDIENCE, signing_key, token

ROLE: Final = "operator"
"""The super user by its token."""
USER: Final = "ann"
PASSWORD: Final = "a right password"
CLIENT_ID: Final = "orders"
"""The super user by the tokens of the issuer."""
LIFE_S: Final = 600
_PROVIDER: Final = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
_OPENID_PROVIDER: Final = (
    "org.apache.pulsar.broker.authentication.oidc.AuthenticationProviderOpenID"
)


@dataclass(frozen=True)
class Secured:
    """Such a broker, and what its clients present."""

    broker: BrokerProcess
    authority: Path
    token: Path
    certificate: Path
    key: Path
    """Those of the role ``admin``."""
    issuer: FakeIssuer
    credentials: Path
    """What the issuer gives tokens for, as Pulsar's clients read it."""


def headgate(*words: str) -> str:
    """What a command of ours prints."""
    command = [sys.executable, "-m", "headgate.cli", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@contextmanager
def secured_broker(folder: Path) -> Iterator[Secured]:
    """Start one, and an issuer of tokens; all of its roles are super users."""
    with fake_issuer({"k1": signing_key()}) as issuer:
        issuer.make_token = lambda client: token(
            issuer.keys["k1"], iss=issuer.url, sub=client,
            iat=time.time() - 1, exp=time.time() + LIFE_S,
        )  # fmt: skip
        found = _started(folder, issuer)
        try:
            yield found
        finally:
            found.broker.close()


def _started(folder: Path, issuer: FakeIssuer) -> Secured:
    certificates = folder / "certificates"
    headgate("certs", "create", "--dir", str(certificates))
    key, token_file, users = folder / "secret.key", folder / "token", folder / "users"
    headgate("tokens", "create-secret-key", "--output", str(key))
    made = headgate("tokens", "create", "--secret-key", f"file://{key}", "--subject", ROLE)
    _keep(token_file, made)
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(6)).decode()
    _keep(users, f"{USER}:{hashed}\n")
    authority = certificates / "ca.cert.pem"
    settings = {
        "brokerServicePort": "-1",
        "webServicePort": "-1",
        "brokerServicePortTls": "0",
        "webServicePortTls": "0",
        "tlsCertificateFilePath": str(certificates / "server.cert.pem"),
        "tlsKeyFilePath": str(certificates / "server.key.pem"),
        "tlsTrustCertsFilePath": str(authority),
        "authenticationEnabled": "true",
        "authenticationProviders": f"{_PROVIDER}Token,{_PROVIDER}Basic,{_PROVIDER}Tls"
        f",{_OPENID_PROVIDER}",
        "openIDAllowedTokenIssuers": issuer.url,
        "openIDAllowedAudiences": AUDIENCE,
        "openIDRequireIssuersUseHttps": "false",
        "authorizationEnabled": "true",
        "tokenSecretKey": f"file://{key}",
        "basicAuthConf": f"file://{users}",
        "superUserRoles": f"{ROLE},{USER},{CLIENT_ID},admin",
    }
    broker = BrokerProcess(
        folder, [word for item in settings.items() for word in ("--set", "=".join(item))]
    )
    broker.has_plain_ports = False
    broker.start()
    own = certificates / "client-admin"
    credentials = folder / "credentials.json"
    given = {"client_id": CLIENT_ID, "client_secret": issuer.client_secret}
    _keep(
        credentials, json.dumps({"type": "client_credentials", "issuer_url": issuer.url, **given})
    )
    return Secured(
        broker, authority, token_file, own.with_suffix(".cert.pem"), own.with_suffix(".key.pem"),
        issuer, credentials,
    )  # fmt: skip


def _keep(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
