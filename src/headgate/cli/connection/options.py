"""The options of all commands that connect to a broker, named as ``pulsar-admin``'s."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import click
from click.core import ParameterSource

from headgate.access.admin_api import AdminApi
from headgate.access.client_config import ADMIN_URL, ClientConfig
from headgate.cli.connection.sources import GivenOptions, client_config, warn_of_open_tls

Command = Callable[..., None]

_ACCESS_OPTIONS: Final = (
    click.option(
        "--config", "config_path", metavar="FILE",
        help="A client.conf of Pulsar, with URLs, credentials and TLS; by default the file that"
        " PULSAR_CLIENT_CONF names.",
    ),
    click.option(
        "--profile", metavar="NAME",
        help="Profile in ~/.config/headgate/profiles.toml, in place of --config; by default that of"
        " HEADGATE_PROFILE.",
    ),
    click.option(
        "--auth-plugin", metavar="PLUGIN",
        help="Kind of credentials: token, basic, tls, oauth2, or Pulsar's class of one.",
    ),
    click.option(
        "--auth-params", metavar="PARAMS",
        help="Credentials of that kind. Other users see a secret on the command line: give"
        " file:///PATH or env:NAME in place of it.",
    ),
    click.option(
        "--token-file", metavar="FILE",
        help="File with a token, which is read again for each request; by default HEADGATE_TOKEN"
        " has the token.",
    ),
    click.option(
        "--tls-trust-cert-path", metavar="FILE",
        help="PEM file of the certificate authorities to trust; the public ones by default.",
    ),
    click.option(
        "--tls-enable-hostname-verification/--tls-disable-hostname-verification", default=None,
        help="Whether a certificate must be of the URL's host; it must by default.",
    ),
    click.option(
        "--tls-allow-insecure", is_flag=True, default=None,
        help="Trust any certificate; for tests only.",
    ),
)  # fmt: skip

ACCESS_PARAMETERS: Final = (
    "config_path", "profile", "auth_plugin", "auth_params", "token_file", "tls_trust_cert_path",
    "tls_enable_hostname_verification", "tls_allow_insecure",
)  # fmt: skip
"""Names of the parameters of :func:`access_options`."""

_ADMIN_URL_OPTION: Final = click.option(
    "--admin-url", metavar="URL", default=ADMIN_URL, show_default=True,
    help="URL of the admin API, in place of webServiceUrl in a file or profile.",
)  # fmt: skip


def access_options(command: Command) -> Command:
    """Options of credentials and TLS, for a command that has URLs of its own.

    It receives them as ``connect``, a function that gives the :class:`ClientConfig`, so that files
    are only read for a command that asks a broker.
    """

    @functools.wraps(command)
    def with_config(*args: Any, **others: Any) -> None:
        found = {name: others.pop(name) for name in ACCESS_PARAMETERS}
        command(*args, connect=functools.partial(_config, None, found), **others)

    decorated: Command = with_config
    for option in reversed(_ACCESS_OPTIONS):
        decorated = option(decorated)
    return decorated


def api_options(command: Command) -> Command:
    """``--admin-url`` and options of credentials and TLS.

    The command receives them as ``connect``, a function that gives the :class:`AdminApi`, the same
    each time. So files are only read for a command that asks the broker.
    """

    @functools.wraps(command)
    def with_api(*args: Any, admin_url: str, **others: Any) -> None:
        found = {name: others.pop(name) for name in ACCESS_PARAMETERS}
        url = admin_url if is_given("admin_url") else None
        command(*args, connect=functools.cache(functools.partial(_api, url, found)), **others)

    decorated: Command = with_api
    for option in reversed((_ADMIN_URL_OPTION, *_ACCESS_OPTIONS)):
        decorated = option(decorated)
    return decorated


def is_given(name: str) -> bool:
    """Whether the command line has the parameter ``name`` of the running command."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def warn(text: str) -> None:
    """Print a warning to the standard error, once."""
    said: set[str] = click.get_current_context().meta.setdefault(__name__, set())
    if text not in said:
        said.add(text)
        click.echo(f"Warning: {text}", err=True)


def _api(admin_url: str | None, found: Mapping[str, Any]) -> AdminApi:
    config = _config(admin_url, found)
    warn_of_open_tls(config, [config.admin_url], warn)
    return AdminApi(config, os.environ, warn)


def _config(admin_url: str | None, found: Mapping[str, Any]) -> ClientConfig:
    """How to connect, by the values of :data:`ACCESS_PARAMETERS`."""
    given = GivenOptions(
        admin_url,
        config_path=found["config_path"],
        profile=found["profile"],
        auth_plugin=found["auth_plugin"],
        auth_params=found["auth_params"],
        token_path=found["token_file"],
        trust_path=found["tls_trust_cert_path"],
        verify_hostname=found["tls_enable_hostname_verification"],
        allow_insecure=found["tls_allow_insecure"] or None,
    )
    return client_config(given, os.environ, warn)
