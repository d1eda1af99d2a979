"""What every web server of Headgate checks of a request's ``Host``, and adds to its responses.

A page whose name resolves to this machine's address (DNS rebinding) could otherwise read
everything. Its requests have its name in ``Host``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

OWN_HEADERS: Final = (
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
"""Headers of every response that has no other value for them: no foreign page may use it, no
browser guesses its type, shows it as a page that loads or runs something, or keeps what belongs to
one user."""


_WITH_PORT: Final = re.compile(r"(\[[^\]]*\]|[^:]*)(?::[0-9]*)?")


class HostNames:
    """The host names of a web port."""

    def __init__(self, own: Iterable[str], configured: str = "") -> None:
        """``own`` are the server's names. ``configured`` is a setting: names with commas between
        them, ``*.`` before one for all below it, ``*`` alone for any."""
        names = configured.split(",")
        self._configured = frozenset(plain_host(name) for name in names if name.strip())
        self._own = frozenset(plain_host(name) for name in own if name) | {"localhost"}

    def has(self, host: str) -> bool:
        """Whether ``host``, without a port, is one of them or an IP address."""
        name = plain_host(host)
        if name in self._own or name.endswith(".localhost") or _is_address(name):
            return True
        return self.is_configured(name)

    def is_configured(self, host: str) -> bool:
        """Whether the setting names it."""
        name = plain_host(host)
        return (
            name in self._configured
            or "*" in self._configured
            or any(each[:2] == "*." and name.endswith(each[1:]) for each in self._configured)
        )


def host_without_port(host: str) -> str:
    """The host of a ``Host`` header; of an IPv6 address with its brackets. What follows it and is
    no port stays with it, and makes it the name of nothing."""
    found = _WITH_PORT.fullmatch(host)
    return found[1] if found else host


def names_user(url: str) -> bool:
    """Whether a URL names a user, perhaps with a password: errors and logs must not repeat it."""
    behind_scheme = (url.partition("://")[2] or url).lstrip("/")
    authority = re.split(r"[/?#]", behind_scheme, maxsplit=1)[0]
    return "@" in authority


def plain_host(name: str) -> str:
    """A name as it is compared."""
    return name.strip().strip("[]").rstrip(".").lower()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on ``host``."""
    return ipaddress.ip_address(host).is_loopback if _is_address(host) else host == "localhost"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
