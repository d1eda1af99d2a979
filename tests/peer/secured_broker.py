"""A broker that only offers TLS and asks for a token, a password or a certificate."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import bcrypt

from tests.service.process import BrokerProcess

ROLE: Final = "operator"
"""The super user by its token."""
USER: Final = "ann"
PASSWORD: Final = "a right password"
_PROVIDER: Final = "org.apache.pulsar.broker.authentication.AuthenticationProvider"


@dataclass(frozen=True)
class Secured:
    """Such a broker, and what its clients present."""

    broker: BrokerProcess
    authority: Path
    token: Path
    certificate: Path
    key: Path
    """Those of the role ``admin``."""


def headgate(*words: str) -> str:
    """What a command of ours prints."""
    command = [sys.executable, "-m", "headgate.cli", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def secured_broker(folder: Path) -> Secured:
    """Start one; all of its roles are super users."""
    certificates = folder / "certificates"
    headgate("certs", "create", "--dir", str(certificates))
    key, token, users = folder / "secret.key", folder / "token", folder / "users"
    headgate("tokens", "create-secret-key", "--output", str(key))
    _keep(token, headgate("tokens", "create", "--secret-key", f"file://{key}", "--subject", ROLE))
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
        "authenticationProviders": f"{_PROVIDER}Token,{_PROVIDER}Basic,{_PROVIDER}Tls",
        "authorizationEnabled": "true",
        "tokenSecretKey": f"file://{key}",
        "basicAuthConf": f"file://{users}",
        "superUserRoles": f"{ROLE},{USER},admin",
    }
    broker = BrokerProcess(
        folder, [word for item in settings.items() for word in ("--set", "=".join(item))]
    )
    broker.has_plain_ports = False
    broker.start()
    own = certificates / "client-admin"
    return Secured(
        broker, authority, token, own.with_suffix(".cert.pem"), own.with_suffix(".key.pem")
    )


def _keep(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
