"""Finds out how to connect: options before the environment, the environment before files.

One file or profile counts: that of ``--config`` or ``--profile``, or that of ``PULSAR_CLIENT_CONF``
or ``HEADGATE_PROFILE``. An option replaces single values of it. A token in
``HEADGATE_TOKEN`` replaces its credentials, unless an option names the file and it has some.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from headgate.access.authentication import Say, authentication
from headgate.access.client_config import (
    WITHOUT_USER,
    ClientConfig,
    check_keys,
    config_of,
)
from headgate.base.errors import InputError
from headgate.base.input_errors import did_you_mean
from headgate.base.properties import parse_properties
from headgate.base.web_hosts import names_user

CONFIG_VARIABLE: Final = "PULSAR_CLIENT_CONF"
"""Names a ``client.conf``, as for Pulsar's own tools."""
PROFILE_VARIABLE: Final = "HEADGATE_PROFILE"
TOKEN_VARIABLE: Final = "HEADGATE_TOKEN"
"""Has a token: unlike an option, other users of the machine do not see it."""

CLIENT_CONF_BYTES_MAX: Final = 1 << 20
"""Largest ``client.conf`` and file of profiles; Pulsar's own has 4 KB."""

_GROUP_AND_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """What the command line says; None: nothing."""

    admin_url: str | None = None
    config_path: str | None = None
    profile: str | None = None
    auth_plugin: str | None = None
    auth_params: str | None = field(default=None, repr=False)
    token_path: str | None = None
    trust_path: str | None = None
    verify_hostname: bool | None = None
    allow_insecure: bool | None = None


def client_config(given: GivenOptions, environment: Mapping[str, str], say: Say) -> ClientConfig:
    """How to connect. ``say`` gets warnings.

    Raises:
        InputError: sources that exclude each other, a file that cannot be read, or values that are
            not allowed.
    """
    settings, origin, is_shared = _file_settings(given, environment)
    config = config_of(settings, origin)
    is_of_file = bool(config.auth_params)
    config = _with_options(_with_credentials(config, given, environment), given)
    for url, name in ((config.admin_url, config.url_origin), (config.broker_url, origin)):
        if names_user(url):
            raise InputError(f"{name} is {WITHOUT_USER}")
    sent = authentication(config, environment, say)
    if sent.is_literal and config.auth_origin == "--auth-params":
        say(
            "every user of this machine can see a secret in --auth-params (ps): give file:///PATH "
            "or env:NAME in place of it, or a --config FILE"
        )
    elif sent.is_literal and is_of_file and is_shared:
        say(f"all users of this machine may read the secret in {origin}: chmod 600 it")
    if config.auth_plugin and _is_readable_on_the_way(config.admin_url):
        say(
            f"{config.admin_url} has no TLS: the network between can read the credentials that "
            "are sent there; give an https:// URL"
        )
    return config


def _is_readable_on_the_way(url: str) -> bool:
    """Whether what is sent to ``url`` leaves this machine without TLS."""
    try:
        where = urlsplit(url if "://" in url else f"http://{url}")
        host = where.hostname or ""
    except ValueError:
        return False  # the first request says what is wrong with it
    if where.scheme != "http" or host in ("", "localhost"):
        return False
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return True


def warn_of_open_tls(config: ClientConfig, urls: Sequence[str], say: Say) -> None:
    """Tell ``say`` what is not checked of the certificates of those ``urls`` that have TLS."""
    if not any(url.startswith(("https:", "pulsar+ssl:")) for url in urls):
        return
    if config.allow_insecure:
        say("any certificate is trusted (tlsAllowInsecureConnection): for tests only")
    elif not config.verify_hostname:
        say(
            "a certificate of another host is accepted (tlsEnableHostnameVerification=false): any "
            "server with a certificate of a trusted authority could take the broker's place"
        )


def profiles_path(environment: Mapping[str, str]) -> str:
    """The file of profiles.

    Raises:
        InputError: no variable says where it is: in the folder in which the command was started
            others may have put one.
    """
    config, home = environment.get("XDG_CONFIG_HOME"), environment.get("HOME")
    if not config and not home:
        raise InputError("a profile is wanted, and neither HOME nor XDG_CONFIG_HOME is set")
    return os.path.join(config or f"{home}/.config", "headgate", "profiles.toml")


def _file_settings(
    given: GivenOptions, environment: Mapping[str, str]
) -> tuple[Mapping[str, str], str, bool]:
    """The keys of the file that counts, its name, and whether all users may read it."""
    path, profile = given.config_path, given.profile
    names = "--config and --profile"
    if path is None and profile is None:
        path = environment.get(CONFIG_VARIABLE) or None
        profile = environment.get(PROFILE_VARIABLE) or None
        names = f"{CONFIG_VARIABLE} and {PROFILE_VARIABLE}"
    if path is not None and profile is not None:
        raise InputError(f"{names} name two ways to connect: leave one out")
    if path is not None:
        text, mode = _read(path, "the client configuration")
        found = {each.key: each.value for each in parse_properties(text, Path(path).name)}
        return found, path, bool(mode & stat.S_IROTH)
    if profile is not None:
        return _profile(profile, profiles_path(environment)), f"profile {profile}", False
    return {}, "", False


def _profile(name: str, path: str) -> Mapping[str, str]:
    import tomllib

    text, mode = _read(path, f"profile {name!r}: the file of profiles")
    if mode & _GROUP_AND_OTHERS:
        raise InputError(
            f"{path} has credentials, and others may read or write it "
            f"(mode {stat.S_IMODE(mode):04o}): chmod 600 {path}"
        )
    try:
        profiles: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # The text of the error has a line and a column, and nothing of the file.
        raise InputError(f"{path} is no TOML: {error}") from error
    found = profiles.get(name)
    if not isinstance(found, dict):
        known = ", ".join(sorted(profiles)) or "none"
        raise InputError(
            f"there is no profile {name!r} in {path}{did_you_mean(name, profiles)} "
            f"(it has: {known})"
        )
    settings = {key: _setting(value, f"profile {name}: {key}") for key, value in found.items()}
    check_keys(settings, f"profile {name}")
    return settings


def _setting(value: Any, what: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        raise InputError(f"{what}: a text in quotes, true or false is allowed")
    return value.strip()


def _read(path: str, what: str) -> tuple[str, int]:
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(CLIENT_CONF_BYTES_MAX + 1)
    except OSError as error:
        raise InputError(f"{what} {path} cannot be read: {error.strerror}") from error
    if len(data) > CLIENT_CONF_BYTES_MAX:
        raise InputError(f"{what} {path} is too long: {CLIENT_CONF_BYTES_MAX:,} bytes are allowed")
    try:
        return data.decode(), mode
    except UnicodeDecodeError as error:
        raise InputError(f"{what} {path} is not UTF-8 text (byte {error.start})") from error


def _with_credentials(
    config: ClientConfig, given: GivenOptions, environment: Mapping[str, str]
) -> ClientConfig:
    """``config`` with the credentials of the options, or of ``HEADGATE_TOKEN``."""
    if given.token_path is not None:
        if given.auth_plugin is not None or given.auth_params is not None:
            raise InputError(
                "--token-file is short for --auth-plugin token --auth-params file:///PATH: leave "
                "one of the two forms out"
            )
        path = quote(os.path.abspath(given.token_path))
        return replace(
            config, auth_plugin="token", auth_params=f"file://{path}", auth_origin="--token-file"
        )
    if given.auth_plugin is not None or given.auth_params is not None:
        return replace(
            config,
            auth_plugin=config.auth_plugin if given.auth_plugin is None else given.auth_plugin,
            auth_params=config.auth_params if given.auth_params is None else given.auth_params,
            auth_origin=config.auth_origin if given.auth_params is None else "--auth-params",
        )
    is_named = given.config_path is not None or given.profile is not None
    if environment.get(TOKEN_VARIABLE) and not (is_named and config.auth_plugin):
        return replace(
            config,
            auth_plugin="token",
            auth_params=f"env:{TOKEN_VARIABLE}",
            auth_origin="",
        )
    return config


def _with_options(config: ClientConfig, given: GivenOptions) -> ClientConfig:
    """``config`` with the other options."""
    if given.admin_url is not None:
        config = replace(config, admin_url=given.admin_url, url_origin="--admin-url")
    if given.trust_path is not None:
        config = replace(config, trust_path=given.trust_path)
    if given.verify_hostname is not None:
        config = replace(config, verify_hostname=given.verify_hostname)
    if given.allow_insecure is not None:
        config = replace(config, allow_insecure=given.allow_insecure)
    return config
