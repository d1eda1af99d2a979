"""How a command connects to a broker, by the keys of Pulsar's ``client.conf``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headgate.base.errors import InputError
from headgate.base.input_errors import InputErrors, did_you_mean

ADMIN_URL: Final = "http://127.0.0.1:8080"
"""The admin API of a broker with the usual settings on this machine."""

CLIENT_KEYS: Final = (
    "webServiceUrl",
    "brokerServiceUrl",
    "authPlugin",
    "authParams",
    "tlsTrustCertsFilePath",
    "tlsCertificateFilePath",
    "tlsKeyFilePath",
    "tlsAllowInsecureConnection",
    "tlsEnableHostnameVerification",
)
"""The keys of ``client.conf`` that count. Others are for Pulsar's own tools."""

WITHOUT_USER: Final = (
    "a URL with a user or password, which errors and logs would show; use http://HOST:PORT of the "
    "admin API, and authPlugin and authParams for credentials"
)
"""Said of a URL that is not repeated."""

_AUTH: Final = {"authPlugin", "authParams"}
_KEY_STORE: Final = "useKeyStoreTls"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """URLs, credentials and TLS of a broker. A path of "" means that there is none."""

    admin_url: str = ADMIN_URL
    broker_url: str = ""
    """Of the binary protocol; empty if no source names one."""
    auth_plugin: str = ""
    """Pulsar's class or a short name; empty without credentials."""
    auth_params: str = field(default="", repr=False)
    trust_path: str = ""
    """PEM file of the certificate authorities to trust; without one, the public ones."""
    certificate_path: str = ""
    """The client's certificate, with its key in ``key_path``."""
    key_path: str = ""
    allow_insecure: bool = False
    """Whether any certificate is trusted."""
    verify_hostname: bool = True
    """Whether the certificate must be of the URL's host."""
    url_origin: str = "--admin-url"
    """Where ``admin_url`` is set, for errors about it."""
    auth_origin: str = ""
    """Where the credentials are set, for errors about them."""


def config_of(settings: Mapping[str, str], origin: str) -> ClientConfig:
    """The value that a file or profile describes, whose name is ``origin``.

    An empty value means: not set. Keys that are not in :data:`CLIENT_KEYS` do not count.

    Raises:
        InputError: values that are not allowed, all of them.
    """
    given = {key: value for key, value in settings.items() if value}
    faults = InputErrors()
    flags = {"tlsAllowInsecureConnection": False, "tlsEnableHostnameVerification": True}
    for key in flags:
        with faults.collecting():
            flags[key] = _flag(given.get(key), flags[key], f"{origin}: {key}")
    with faults.collecting():
        if _flag(given.get(_KEY_STORE), False, f"{origin}: {_KEY_STORE}"):
            raise InputError(
                f"{origin}: {_KEY_STORE}=true is not allowed: key stores of Java cannot be read; "
                "use tlsTrustCertsFilePath, tlsCertificateFilePath and tlsKeyFilePath with PEM "
                "files"
            )
    pair = ("tlsCertificateFilePath", "tlsKeyFilePath")
    if (pair[0] in given) != (pair[1] in given):
        faults.add(f"{origin}: {pair[0]} and {pair[1]} belong together: set both or none")
    faults.raise_any()
    return ClientConfig(
        admin_url=given.get("webServiceUrl", ADMIN_URL),
        broker_url=given.get("brokerServiceUrl", ""),
        auth_plugin=given.get("authPlugin", ""),
        auth_params=given.get("authParams", ""),
        trust_path=given.get("tlsTrustCertsFilePath", ""),
        certificate_path=given.get(pair[0], ""),
        key_path=given.get(pair[1], ""),
        allow_insecure=flags["tlsAllowInsecureConnection"],
        verify_hostname=flags["tlsEnableHostnameVerification"],
        url_origin=f"webServiceUrl in {origin}" if "webServiceUrl" in given else "--admin-url",
        auth_origin=f"authParams in {origin}" if given.keys() & _AUTH else "",
    )


def check_keys(settings: Mapping[str, str], origin: str) -> None:
    """Check that every key is in :data:`CLIENT_KEYS`, for files that only Headgate reads.

    Raises:
        InputError: keys that are not.
    """
    faults = InputErrors()
    for key in settings:
        if key not in CLIENT_KEYS:
            faults.add(f"{origin}: there is no key {key!r}{did_you_mean(key, CLIENT_KEYS)}")
    faults.raise_any()


def _flag(text: str | None, default: bool, what: str) -> bool:
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise InputError(f"{what}={text!r} is not allowed: true or false is")
    return text.lower() == "true"
