"""A broker as the clients' own suites expect it: ports, certificates, keys and rights."""

from __future__ import annotations

import json
import shutil
import urllib.request
from pathlib import Path
from typing import Any, Final

from tests.peer.secured_broker import headgate
from tests.service.process import BrokerProcess

ADMIN_URL: Final = "http://localhost:8080"
PROVIDER: Final = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
_SUPER_USER: Final = "superUser"
_TOKEN_ROLE: Final = "token-principal"
_ANONYMOUS: Final = "anonymous"


class SuiteBroker:
    """One broker for a whole suite, from :meth:`start` to :meth:`close`."""

    def __init__(self, folder: Path, secrets: Path, *, htpasswd: Path, secret_key: Path | None):
        """``secrets`` has the suite's ``broker-cert.pem``, ``broker-key.pem`` and ``cacert.pem``. A
        ``secret_key`` of None makes a new one."""
        self._folder = folder
        self._keys = folder / "keys"
        self._keys.mkdir()
        for path in secrets.glob("*.pem"):
            self._keep(path, path.name)
        if htpasswd.is_file():
            self._keep(htpasswd, "htpasswd")
        if secret_key is None:
            headgate("tokens", "create-secret-key", "--output", self.secret_key)
        else:
            self._keep(secret_key, "secret.key")
        config = folder / "broker.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._settings().items()))
        self._broker = BrokerProcess(folder, ["--config", str(config)])
        self._broker.has_plain_ports = False

    @property
    def secret_key(self) -> str:
        """The file of the key that signs tokens."""
        return str(self._keys / "secret.key")

    def _keep(self, source: Path, name: str) -> None:
        shutil.copyfile(source, self._keys / name)
        (self._keys / name).chmod(0o600)

    def _settings(self) -> dict[str, Any]:
        keys = self._keys
        found: dict[str, Any] = {
            "brokerServicePort": 6650,
            "brokerServicePortTls": 6651,
            "webServicePort": 8080,
            "webServicePortTls": 8443,
            "bindAddress": "127.0.0.1",
            "advertisedAddress": "localhost",
            "clusterName": "standalone",
            "maxMessageSize": 1 << 20,
            "tlsCertificateFilePath": keys / "broker-cert.pem",
            "tlsKeyFilePath": keys / "broker-key.pem",
            "tlsTrustCertsFilePath": keys / "cacert.pem",
            "anonymousUserRole": _ANONYMOUS,
            "authenticationEnabled": "true",
            "authenticationProviders": f"{PROVIDER}Tls,{PROVIDER}Token",
            "authorizationEnabled": "true",
            "tokenSecretKey": f"file://{self.secret_key}",
            "superUserRoles": f"localhost,{_SUPER_USER},admin",
        }
        if (keys / "htpasswd").is_file():
            found["basicAuthConf"] = keys / "htpasswd"
            found["authenticationProviders"] += f",{PROVIDER}Basic"
        return found

    def token(self, role: str) -> str:
        """A token of a role."""
        key = f"file://{self.secret_key}"
        return headgate("tokens", "create", "--secret-key", key, "--subject", role).strip()

    def start(self) -> None:
        """Start it, and give the rights that the suites expect."""
        self._broker.start()
        self._super_token = self.token(_SUPER_USER)
        clusters = {"allowedClusters": ["standalone"]}
        self._ask("POST", "tenants/public", {"adminRoles": [_ANONYMOUS], **clusters})
        self._ask("PUT", "tenants/private", {"adminRoles": [], **clusters})
        for namespace in ("public/default-2", "private/auth"):
            self._ask("PUT", f"namespaces/{namespace}", {})
        rights = ["produce", "consume"]
        for namespace, role in (
            ("public/default", _ANONYMOUS),
            ("public/default-2", _ANONYMOUS),
            ("private/auth", _TOKEN_ROLE),
        ):
            self._ask("POST", f"namespaces/{namespace}/permissions/{role}", rights)

    def log(self) -> str:
        """What it has logged."""
        return self._broker.log()

    def close(self) -> None:
        """End it."""
        self._broker.close()

    def _ask(self, method: str, path: str, body: object) -> None:
        request = urllib.request.Request(
            f"{ADMIN_URL}/admin/v2/{path}",
            data=json.dumps(body).encode(),
            method=method,
            headers={
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self._super_token}",
            },
        )
        with urllib.request.urlopen(request, timeout=30):
            pass
