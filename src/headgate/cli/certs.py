"""The commands ``headgate certs``: certificates for a trial of TLS."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from headgate.app.key_files import read_file, write_new, write_secret
from headgate.base.errors import InputError
from headgate.cli.group import SuggestingGroup
from headgate.security.certificate_making import Authority, Made, new_ec_key, new_serial_number

DIRECTORY: Final = "headgate-certs"
DAYS: Final = 365
CONFIG: Final = "tls.conf"
"""In the directory: the settings of a broker with these certificates."""
_CLIENT_PLUGIN: Final = "org.apache.pulsar.client.impl.auth.AuthenticationTls"
"""Pulsar's own name, so that its tools can read the files of clients as well."""
_WRITTEN_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_OWN_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""Roles whose names are also names of files."""

_DIRECTORY_OPTION: Final = click.option(
    "--dir", "directory", metavar="DIR", default=DIRECTORY, show_default=True,
    help="The directory of the certificates.",
)  # fmt: skip
_DAYS_OPTION: Final = click.option(
    "--days", type=click.IntRange(1, 3_650), default=DAYS, show_default=True,
    help="How long they are valid; the authority is valid for ten years.",
)  # fmt: skip


@click.group("certs", cls=SuggestingGroup)
def certs_group() -> None:
    """Make certificates for a trial of TLS.

    They are for machines that you own: the authority's key is a file in the directory, and
    whoever has it can make certificates that your brokers and clients accept.
    """


@certs_group.command("create")
@_DIRECTORY_OPTION
@click.option(
    "--host", "hosts", metavar="NAME", multiple=True,
    help="A further host name or IP address by which clients reach the broker; may be repeated. "
    "The loopback names and this host's name are always there.",
)  # fmt: skip
@click.option(
    "--role", "roles", metavar="ROLE", multiple=True, default=("admin",), show_default=True,
    help="A client to make a certificate for: its role is the common name. May be repeated.",
)  # fmt: skip
@_DAYS_OPTION
def create_command(
    directory: str, hosts: tuple[str, ...], roles: tuple[str, ...], days: int
) -> None:
    """Make an authority, a certificate for the broker, and one for each client."""
    roles = tuple(dict.fromkeys(roles))
    _check_names(roles)
    all_hosts = [*_OWN_HOSTS, *([name] if (name := socket.gethostname()) else []), *hosts]
    place = Path(directory).absolute()
    for name in ("ca", "server"):
        _check_absent(place, name)
    for role in roles:
        _check_client_absent(place, role)
    if (place / CONFIG).exists():
        raise _exists(place / CONFIG)
    now = datetime.now(UTC)
    authority = Authority.new(now, new_ec_key, new_serial_number)
    made = {
        "ca": authority.made,
        "server": authority.server(all_hosts, now, days, new_ec_key, new_serial_number),
    }
    for role in roles:
        made[f"client-{role}"] = authority.client(role, now, days, new_ec_key, new_serial_number)
    _write(place, made)
    _write_lines(place / CONFIG, _settings(place))
    for role in roles:
        _write_lines(place / _client_config(role), _of_client(place, role, hosts))
    _say(place, all_hosts, roles)


@certs_group.command("create-client")
@_DIRECTORY_OPTION
@click.argument("roles", metavar="ROLE...", nargs=-1, required=True)
@click.option(
    "--host", metavar="NAME", default=_OWN_HOSTS[0], show_default=True,
    help="The host name of the broker, for the configuration of each client.",
)  # fmt: skip
@_DAYS_OPTION
def create_client_command(directory: str, roles: tuple[str, ...], host: str, days: int) -> None:
    """Make a certificate for each further client, signed by the authority of the directory."""
    roles = tuple(dict.fromkeys(roles))
    _check_names(roles)
    place = Path(directory).absolute()
    for role in roles:
        _check_client_absent(place, role)
    certificate = read_file(str(place / "ca.cert.pem"), "--dir")
    key = read_file(str(place / "ca.key.pem"), "--dir", is_secret=True)
    authority = Authority.read(certificate, key, f"--dir {place}")
    now = datetime.now(UTC)
    _write(
        place,
        {
            f"client-{role}": authority.client(role, now, days, new_ec_key, new_serial_number)
            for role in roles
        },
    )
    for role in roles:
        _write_lines(place / _client_config(role), _of_client(place, role, (host,)))
        click.echo(
            f"client-{role}.cert.pem, client-{role}.key.pem and client-{role}.conf are in {place}"
        )


def _check_names(roles: Sequence[str]) -> None:
    for role in roles:
        if not _NAME.fullmatch(role):
            raise InputError(
                f"role {role[:80]!r} is not allowed: letters, digits and _.- are, because the "
                "certificate's file is named after it"
            )


def _check_absent(place: Path, name: str) -> None:
    for path in (place / f"{name}.cert.pem", place / f"{name}.key.pem"):
        if path.exists():
            raise _exists(path)


def _check_client_absent(place: Path, role: str) -> None:
    _check_absent(place, f"client-{role}")
    if (place / _client_config(role)).exists():
        raise _exists(place / _client_config(role))


def _client_config(role: str) -> str:
    return f"client-{role}.conf"


def _exists(path: Path) -> InputError:
    return InputError(f"{path} exists already: nothing is overwritten; choose another --dir")


def _write(place: Path, made: dict[str, Made]) -> None:
    try:
        os.makedirs(place, 0o700, exist_ok=True)
        found = os.stat(place)
    except OSError as error:
        raise InputError(f"--dir {place} cannot be made: {error.strerror}") from error
    if found.st_mode & _WRITTEN_BY_OTHERS or found.st_uid != os.geteuid():
        raise InputError(
            f"--dir {place} is another user's, or others may write there (mode "
            f"{stat.S_IMODE(found.st_mode):04o}), who could put own certificates in the place of "
            f"yours: chmod go-w {place}, or choose another --dir"
        )
    for name, each in made.items():
        write_secret(str(place / f"{name}.key.pem"), each.key)
        write_new(str(place / f"{name}.cert.pem"), each.certificate)


def _settings(place: Path) -> tuple[str, ...]:
    return (
        "brokerServicePortTls=6651",
        "webServicePortTls=8443",
        f"tlsCertificateFilePath={place}/server.cert.pem",
        f"tlsKeyFilePath={place}/server.key.pem",
        f"tlsTrustCertsFilePath={place}/ca.cert.pem",
    )


def _of_client(place: Path, role: str, hosts: Sequence[str]) -> tuple[str, ...]:
    """What ``--config`` of a client's commands reads. The first host that was named is where it
    finds the broker."""
    host = hosts[0] if hosts else _OWN_HOSTS[0]
    address = f"[{host}]" if ":" in host else host
    name = f"{place}/client-{role}"
    return (
        f"webServiceUrl=https://{address}:8443",
        f"brokerServiceUrl=pulsar+ssl://{address}:6651",
        f"tlsTrustCertsFilePath={place}/ca.cert.pem",
        "tlsEnableHostnameVerification=true",
        f"authPlugin={_CLIENT_PLUGIN}",
        f"authParams=tlsCertFile:{name}.cert.pem,tlsKeyFile:{name}.key.pem",
    )


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    write_new(str(path), "".join(f"{line}\n" for line in lines).encode())


def _say(place: Path, hosts: Sequence[str], roles: Sequence[str]) -> None:
    click.echo(f"Certificates for {', '.join(dict.fromkeys(hosts))} are in {place}.")
    click.echo(f"\nStart a broker with them: headgate standalone --config {place / CONFIG}\n")
    for line in _settings(place):
        click.echo(f"    {line}")
    click.echo(f"\nClients need tlsTrustCertsFilePath={place}/ca.cert.pem")
    if roles:
        config = place / _client_config(roles[0])
        click.echo(f"\nAsk the broker as {roles[0]}: headgate admin --config {config} tenants list")
