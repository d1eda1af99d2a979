"""Certificates of a trial, as files: an authority, a server, two clients, and a stranger."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from headgate.security.certificate_making import Authority, Made, new_ec_key

HOSTS = ("localhost", "127.0.0.1", "::1", "broker.example")


class Trial:
    """Files of one authority in a folder."""

    def __init__(self, folder: Path, *, days: int = 90) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        now = datetime.now(UTC)
        self.authority = Authority.new(now, new_ec_key, x509.random_serial_number)
        write(folder, "ca", self.authority.made)
        self.renew_server(days)
        self.client("admin")

    @property
    def ca(self) -> str:
        """The authority's certificate."""
        return str(self.folder / "ca.cert.pem")

    @property
    def settings(self) -> dict[str, str]:
        """The broker's settings, with free ports of TLS; clients may show a certificate."""
        return {
            "brokerServicePortTls": "0",
            "webServicePortTls": "0",
            "tlsCertificateFilePath": str(self.folder / "server.cert.pem"),
            "tlsKeyFilePath": str(self.folder / "server.key.pem"),
            "tlsTrustCertsFilePath": self.ca,
        }

    def renew_server(self, days: int = 90) -> None:
        """Replace the server's certificate and key."""
        now = datetime.now(UTC)
        made = self.authority.server(HOSTS, now, days, new_ec_key, x509.random_serial_number)
        write(self.folder, "server", made)

    def server(self, name: str, *hosts: str, days: int = 90) -> tuple[str, str]:
        """The files of a further certificate of a server and its key, made anew."""
        now = datetime.now(UTC)
        made = self.authority.server(hosts, now, days, new_ec_key, x509.random_serial_number)
        write(self.folder, name, made)
        return str(self.folder / f"{name}.cert.pem"), str(self.folder / f"{name}.key.pem")

    def client(self, role: str) -> tuple[str, str]:
        """The files of a client's certificate and key."""
        paths = self.folder / f"client-{role}.cert.pem", self.folder / f"client-{role}.key.pem"
        if not paths[0].exists():
            now = datetime.now(UTC)
            made = self.authority.client(role, now, 90, new_ec_key, x509.random_serial_number)
            write(self.folder, f"client-{role}", made)
        return str(paths[0]), str(paths[1])

    def context(self, role: str = "") -> ssl.SSLContext:
        """A client's context, with the certificate of ``role`` if one is given."""
        context = ssl.create_default_context(cafile=self.ca)
        if role:
            context.load_cert_chain(*self.client(role))
        return context


def write(folder: Path, name: str, made: Made) -> None:
    """Write certificate and key; replaces each file at once."""
    for kind, data, mode in (("key", made.key, 0o600), ("cert", made.certificate, 0o644)):
        path = folder / f"{name}.{kind}.pem"
        temporary = path.with_suffix(".new")
        temporary.write_bytes(data)
        temporary.chmod(mode)
        temporary.rename(path)
