"""The listening sockets of a broker and their addresses.

A start binds both ports before it opens the data directory. So it fails at once if a port is busy,
and knows its own address before it serves. Early connections wait in the kernel's queue.
"""

from __future__ import annotations

import errno
import ipaddress
import socket

from headgate.base.errors import HeadgateError, InputError
from headgate.base.web_hosts import is_loopback
from headgate.policy.settings import Settings

BACKLOG_CONNECTIONS_MAX = 4_096
"""Connections that wait to be accepted, if the system allows so many (``net.core.somaxconn``). A
client beyond it tries again after a second: thousands reconnect at once after a restart."""


class ListenError(HeadgateError):
    """The broker cannot listen on an address or port; the text names the setting."""


class OpenAddressError(InputError):
    """The broker would listen where other machines reach it, and it would ask them for nothing."""


def check_address(host: str, *, has_authentication: bool, is_insecure_allowed: bool) -> str:
    """Check that ``bindAddress=host`` is safe to listen on; returns a warning for each start, empty
    if it is.

    Raises:
        OpenAddressError: others than this machine can reach it, clients need not authenticate, and
            the operator has not said that this is meant.
    """
    if has_authentication or is_loopback(host):
        return ""
    if is_insecure_allowed:
        return (
            f"bindAddress={host}: --insecure-listen is given and there is no authentication: every "
            "client that reaches this address can read, write and delete"
        )
    raise OpenAddressError(
        f"bindAddress={host!r} is not allowed without authentication: every client that reaches "
        "it could read, write and delete. Set authenticationEnabled=true, listen on 127.0.0.1, or "
        "say that this is meant with --insecure-listen"
    )


def listen(host: str, port: int, *, key: str) -> socket.socket:
    """A listening socket; ``port`` 0 takes a free one. ``key`` is the port's setting.

    Raises:
        ListenError: the port is busy, or the address is not this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise ListenError(f"bindAddress={host!r} is not an address of this machine") from error
    listener = socket.socket(family, kind, protocol)
    try:
        # A restart must not wait for the last run's connections to time out.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG_CONNECTIONS_MAX)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise listen_error(error, host, port, key) from error
    return listener


def port_of(listener: socket.socket) -> int:
    """The port that it is bound to."""
    return int(listener.getsockname()[1])


def advertised_host(settings: Settings) -> str:
    """The host in lookups and URLs, in the form for a URL."""
    host = settings.advertisedAddress or settings.bindAddress
    address = _address(host)
    if not host or (address is not None and address.is_unspecified):
        host = socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def listen_error(error: OSError, host: str, port: int, key: str) -> ListenError:
    """The error for ``port`` of ``host``; ``key`` is the port's setting."""
    if error.errno == errno.EADDRINUSE:
        return ListenError(
            f"{key}={port}: the port is in use on {host}; stop what uses it, or choose another "
            "(0 takes a free one)"
        )
    if error.errno == errno.EACCES:
        return ListenError(f"{key}={port}: this user may not listen on that port of {host}")
    if error.errno == errno.EADDRNOTAVAIL:
        return ListenError(f"bindAddress={host!r} is not an address of this machine")
    return ListenError(f"{key}={port}: cannot listen on {host}: {error.strerror}")
